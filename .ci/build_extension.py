"""Build and validate the extension archives with Blender's own tool.

    python .ci/build_extension.py [--platforms current|all|any|NAME,NAME] [--output dist]

An archive holds the add-on and the wheels it needs beyond Blender's own numpy: scipy, gaussforge and
pillow (compiled, one build for each Python that Blender comes with) and trimesh (pure Python). Blender
refuses an extension whose compiled wheels leave out its Python, so Linux, where distributions
build Blender with newer Pythons, gets wheels for those too, and the platform ``any`` is an archive
without compiled wheels that installs everywhere and takes scipy from the system where it is there.
"""

from __future__ import annotations

import argparse
import importlib.util
import platform
import shutil
import subprocess
import sys
import tempfile
import tomllib
from pathlib import Path

ROOT = Path(__file__).resolve().parents[1]
BUILD = ROOT / "build" / "extension"
SOURCES = (
    "__init__.py",
    "__main__.py",
    "blender_manifest.toml",
    "LICENSE",
    "core",
    "gaussianimate_addon",
    "gpu_shaders",
    "operators",
    "panels",
)
PURE = ("trimesh",)
COMPILED = ("scipy", "gaussforge", "pillow")
# Blender's name of a platform: pip's names (newest first), Pythons, compiled packages it has no wheel of.
PLATFORMS: dict[str, tuple[tuple[str, ...], tuple[str, ...], tuple[str, ...]]] = {
    "linux-x64": (
        ("manylinux_2_28_x86_64", "manylinux_2_27_x86_64", "manylinux2014_x86_64"),
        ("3.13", "3.14"),
        (),
    ),
    "windows-x64": (("win_amd64",), ("3.13",), ()),
    "macos-arm64": (("macosx_12_0_arm64", "macosx_11_0_arm64"), ("3.13",), ()),
    "macos-x64": (("macosx_11_0_x86_64", "macosx_10_15_x86_64"), ("3.13",), ("gaussforge",)),
}
ANY = "any"


def extension_tool() -> Path:
    """Return Blender's extension command-line tool, which lies in the bpy wheel."""
    spec = importlib.util.find_spec("bpy")
    if spec is None or not spec.submodule_search_locations:
        sys.exit("build_extension: bpy is not installed in this Python; run it through `make extension`")
    found = sorted(
        Path(spec.submodule_search_locations[0]).glob("*/scripts/addons_core/bl_pkg/cli/blender_ext.py")
    )
    if not found:
        sys.exit("build_extension: this bpy has no bl_pkg/cli/blender_ext.py")
    return found[-1]


def current_platform() -> str:
    """Return Blender's name of the platform this runs on."""
    system = {"darwin": "macos"}.get(platform.system().lower(), platform.system().lower())
    machine = {"x86_64": "x64", "amd64": "x64", "aarch64": "arm64"}.get(platform.machine().lower(), "arm64")
    return f"{system}-{machine}"


def stage_sources(target: Path) -> None:
    """Copy what an archive holds to an empty folder; a missing source is an error, not a smaller archive."""
    target.mkdir(parents=True)
    for name in SOURCES:
        source = ROOT / name
        if source.is_dir():
            shutil.copytree(source, target / name, ignore=shutil.ignore_patterns("__pycache__", ".*"))
        elif source.exists():
            shutil.copy2(source, target / name)
        else:
            sys.exit(f"build_extension: {name} is missing; is this a complete checkout?")


def requirement(name: str) -> str:
    """Return the project's own version range of a package."""
    project = tomllib.loads((ROOT / "pyproject.toml").read_text("utf-8"))["project"]
    return next(entry for entry in project["dependencies"] if entry.startswith(name))


def download(target: Path, names: tuple[str, ...], python: str, tags: tuple[str, ...]) -> None:
    """Fetch the wheels of packages for one Python and platform (pip's cache makes repeats quick)."""
    command = [sys.executable, "-m", "pip", "download", "-qq", "--disable-pip-version-check"]
    command += ["--no-deps", "--only-binary=:all:", "--python-version", python, "--dest", str(target)]
    for tag in tags:
        command += ["--platform", tag]
    subprocess.run([*command, *map(requirement, names)], check=True)


def fetch_wheels(name: str) -> list[Path]:
    """Return the wheels an archive of a platform holds, fetched once into the build folder."""
    target = BUILD / "wheels" / name
    ready = target / ".complete"
    wanted = (ROOT / "pyproject.toml").read_text("utf-8") + Path(__file__).read_text("utf-8")
    if not ready.exists() or ready.read_text("utf-8") != wanted:
        shutil.rmtree(target, ignore_errors=True)
        download(target, PURE, "3.13", ())
        if name != ANY:
            tags, pythons, without = PLATFORMS[name]
            for python in pythons:
                download(target, tuple(p for p in COMPILED if p not in without), python, tags)
        ready.write_text(wanted, "utf-8")
    return sorted(target.glob("*.whl"))


def stage_wheels(source: Path, name: str) -> None:
    """Put a platform's wheels into the staged folder and into its manifest."""
    wheels = fetch_wheels(name)
    (source / "wheels").mkdir()
    for wheel in wheels:
        shutil.copy2(wheel, source / "wheels" / wheel.name)
    lines = [f"wheels = [{', '.join(f'{chr(34)}./wheels/{wheel.name}{chr(34)}' for wheel in wheels)}]"]
    if name != ANY:
        lines.append(f'platforms = ["{name}"]')
    manifest = source / "blender_manifest.toml"
    text = manifest.read_text("utf-8")
    # Top-level keys must stand before the first table.
    head, table, tail = text.partition("\n[")
    manifest.write_text(head.rstrip() + "\n" + "\n".join(lines) + "\n" + table + tail, "utf-8")


def build(name: str, output: Path) -> Path:
    """Build and validate one platform's archive; return its path."""
    version = tomllib.loads((ROOT / "blender_manifest.toml").read_text("utf-8"))["version"]
    output.mkdir(parents=True, exist_ok=True)
    archive = output / f"gaussianimate-{version}-{name.replace('-', '_')}.zip"
    tool = [sys.executable, str(extension_tool())]
    with tempfile.TemporaryDirectory() as folder:  # of its own, as several builds may run at once
        source = Path(folder) / name
        stage_sources(source)
        stage_wheels(source, name)
        for arguments in (
            ["validate", str(source)],
            ["build", "--source-dir", str(source), "--output-filepath", str(archive)],
            ["validate", str(archive)],
        ):
            done = subprocess.run([*tool, *arguments], capture_output=True, text=True)
            if done.returncode:
                sys.exit(f"build_extension: {arguments[0]} failed for {name}\n{done.stdout}{done.stderr}")
    return archive


def main() -> None:
    """Build the archives asked for and print where they are."""
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--platforms", default="current", help="current, all, any, or names parted by commas")
    parser.add_argument("--output", type=Path, default=ROOT / "dist")
    options = parser.parse_args()
    groups = {"all": [*PLATFORMS, ANY], "current": [current_platform()]}
    names = groups.get(options.platforms, options.platforms.split(","))
    for name in names:
        if name != ANY and name not in PLATFORMS:
            sys.exit(f"build_extension: unknown platform {name}; there are {', '.join([*PLATFORMS, ANY])}")
    for name in names:
        archive = build(name, options.output)
        print(f"{archive} ({archive.stat().st_size / 1e6:.1f} MB)")


if __name__ == "__main__":
    main()
