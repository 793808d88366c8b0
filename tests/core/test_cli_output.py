"""The command line where something is missing, full or in the way: one sentence, and nothing left behind."""

import json
import runpy
import subprocess
import sys
from pathlib import Path
from types import SimpleNamespace

import numpy as np
import pytest

from gaussianimate.core import atomic_file
from gaussianimate.core.atomic_file import made_folder, require_writable_folder
from gaussianimate.core.cli import main
from gaussianimate.core.cloud import GaussianCloud
from gaussianimate.core.errors import FormatError
from gaussianimate.core.formats import write_cloud
from gaussianimate.core.rigging.motion_file import Motion, save_motion
from gaussianimate.core.rigging.rig_file import load_rig

synthetic = SimpleNamespace(**runpy.run_path(str(Path(__file__).with_name("rigging") / "synthetic.py")))

LINUX = sys.platform == "linux"  # has /proc, where root may not write either

# Each verb with everything it needs but -o.
VERBS = {
    "rig": ["rig", "capture.npz", "--max-bones", "3"],
    "refine": ["refine", "rig.npz", "capture.npz", "capture.npz"],
    "pose": ["pose", "rig.npz", "--frames", "0:2"],
    "bake": ["bake", "rig.npz", "--cloud", "cloud.ply", "--motion", "motion.npz"],
    "resample": ["resample", "cloud.ply", "--rig", "rig.npz", "--epsilon", "0.01"],
    "train-dictionary": ["train-dictionary", "--iterations", "1", "--rays", "8"],
}
ENDINGS = {name: ".npz" for name in VERBS} | {"resample": ".ply"}


@pytest.fixture(scope="module")
def folder(tmp_path_factory):
    """A capture of a bent tube, its rig, its splats and a motion."""
    path = tmp_path_factory.mktemp("output")
    np.savez(path / "capture.npz", vertices=synthetic.chain(2, count=8)["frames"].astype(np.float32))
    assert main(["rig", str(path / "capture.npz"), "-o", str(path / "rig.npz"), "--max-bones", "3"]) == 0
    rig = load_rig(path / "rig.npz")
    count = rig.point_count
    cloud = GaussianCloud(
        rig.rest,
        np.tile(np.float32([1, 0, 0, 0]), (count, 1)),
        np.full((count, 3), 0.02, np.float32),
        np.full(count, 0.5, np.float32),
        np.zeros((count, 1, 3), np.float32),
    )
    write_cloud(cloud, path / "cloud.ply")
    turns = np.tile([1.0, 0, 0, 0], (2, rig.joint_count, 1))
    save_motion(Motion(turns, np.zeros((2, 3)), 24.0), path / "motion.npz")
    return path


@pytest.fixture
def refused(folder, monkeypatch, capsys):
    """Run a command that must fail with one sentence and leave the folder as it was; return the sentence."""
    monkeypatch.chdir(folder)

    def run(*command):
        before = _contents(folder)
        assert main(list(command)) == 1
        out, error = capsys.readouterr()
        assert _contents(folder) == before
        assert not out and error.count("\n") == 1 and error.startswith("gaussianimate: ")
        return error

    return run


def _contents(folder):
    return {path: path.read_bytes() if path.is_file() else None for path in folder.rglob("*")}


@pytest.mark.parametrize("verb", [verb for verb in VERBS if verb != "bake"])
@pytest.mark.parametrize(
    "name, found", [("x.txt", "ends in .txt"), ("x", "has no ending"), ("/dev/null", "no")]
)
def test_endings_that_nobody_knows(refused, verb, name, found):
    assert found in (error := refused(*VERBS[verb], "-o", name))
    assert f"let the name end in {ENDINGS[verb]}" in error


def test_the_other_kind_of_file(refused):
    assert "let the name end in .ply" in refused(*VERBS["resample"], "-o", "x.npz")
    assert "let the name end in .npz" in refused(*VERBS["resample"], "-o", "x.ply", "--rig-output", "r.ply")
    assert "let the name end in .npz" in refused(*VERBS["rig"], "-o", "x.ply")
    assert "name a folder" in refused(*VERBS["bake"], "-o", "x.ply")


@pytest.mark.parametrize("verb", [verb for verb in VERBS if verb != "bake"])
def test_places_that_take_no_file(refused, folder, verb):
    ending = ENDINGS[verb]
    assert "there is no folder" in refused(*VERBS[verb], "-o", f"nowhere/x{ending}")
    assert "it is a folder" in refused(*VERBS[verb], "-o", ".")
    if LINUX:
        assert "cannot be written to" in refused(*VERBS[verb], "-o", f"/proc/x{ending}")
    assert "there is no folder" in refused(*VERBS[verb], "-o", f"cloud.ply/x{ending}")
    assert "File name too long" in refused(*VERBS[verb], "-o", 300 * "x" + ending)


def test_places_that_take_no_frames(refused):
    assert "is a file; name a folder" in refused(*VERBS["bake"], "-o", "rig.npz")
    if LINUX:
        assert "the folder cannot be made" in refused(*VERBS["bake"], "-o", "/proc/x")
    assert "the folder cannot be made" in refused(*VERBS["bake"], "-o", "rig.npz/deep/er")
    assert "choose another folder" in refused(*VERBS["bake"], "-o", ".")
    assert "File name too long" in refused(*VERBS["bake"], "-o", f"new/{300 * 'x'}/deep")


@pytest.mark.parametrize("name", [300 * "x", 300 * "x" + "/y.npz", "/proc/self/mem", "rig.npz/x"])
def test_names_that_no_file_has(refused, name):
    refused("info", name)
    refused("rig", name, "-o", "x.npz")
    refused("refine", "rig.npz", "capture.npz", name, "-o", "x.npz")
    refused("pose", name, "--frames", ":", "-o", "x.npz")
    refused("pose", "rig.npz", "--motion", name, "-o", "x.npz")
    refused("bake", "rig.npz", "--cloud", name, "--motion", "motion.npz", "-o", "x")
    refused("resample", name, "--rig", "rig.npz", "-o", "x.ply")
    refused("resample", "cloud.ply", "--rig", name, "-o", "x.ply")


@pytest.mark.parametrize("extra", [["--resample", "0.01"], []])
def test_a_bake_that_fails_late_leaves_no_folder(refused, folder, extra):
    wrong = synthetic.chain(2, count=3)["frames"].astype(np.float32)
    np.savez(folder / "other.npz", vertices=wrong)
    assert "is not" in refused(*VERBS["bake"][:-1], "other.npz", "-o", "deep/baked", *extra)


@pytest.mark.skipif(sys.platform == "win32", reason="Windows does not limit the size of files")
def test_a_full_disk_leaves_nothing(folder):
    import resource

    before = _contents(folder)
    for name, output in (("bake", "deep/baked"), ("resample", "full.ply"), ("pose", "full.npz")):
        done = subprocess.run(
            [sys.executable, "-m", "gaussianimate", *VERBS[name], "-o", output],
            cwd=folder,
            capture_output=True,
            text=True,
            timeout=300,
            preexec_fn=lambda: resource.setrlimit(resource.RLIMIT_FSIZE, (4096, 4096)),
        )
        assert done.returncode == 1, name
        assert "cannot be written (File too large)" in done.stderr.splitlines()[-1], name
        assert "Traceback" not in done.stderr and ".tmp" not in done.stderr
        assert _contents(folder) == before, name


def test_splats_are_not_written_without_their_rig(folder, refused):
    (folder / "old.ply").write_bytes(b"what was there")
    code = (
        "import sys; from gaussianimate.core import atomic_npz, cli\n"
        "def full(*_, **__): raise OSError(28, 'No space left on device')\n"
        "atomic_npz.np.savez_compressed = full\n"
        "sys.exit(cli.main(sys.argv[1:]))"
    )
    before = _contents(folder)
    command = [*VERBS["resample"], "-o", "old.ply", "--rig-output", "fine.npz"]
    done = subprocess.run(
        [sys.executable, "-c", code, *command], cwd=folder, capture_output=True, text=True, timeout=300
    )
    assert done.returncode == 1 and "fine.npz: cannot be written (No space left" in done.stderr
    assert _contents(folder) == before


HIDDEN = """
import io, json, sys
from contextlib import redirect_stderr
sys.modules[sys.argv[1]] = None
from gaussianimate.core.cli import main
said = {}
for name, command in json.loads(sys.argv[2]).items():
    with redirect_stderr(io.StringIO()) as stream:
        code = main(command)
    said[name] = code, stream.getvalue()
print(json.dumps(said))
"""


def _without(library, folder, commands):
    done = subprocess.run(
        [sys.executable, "-c", HIDDEN, library, json.dumps(commands)],
        cwd=folder,
        capture_output=True,
        text=True,
        timeout=300,
    )
    assert done.returncode == 0, done.stderr
    return json.loads(done.stdout.splitlines()[-1])


def test_without_scipy_each_command_says_so_or_does_without(folder):
    commands = {name: [*command, "-o", f"out{ENDINGS[name]}"] for name, command in VERBS.items()}
    commands["bake"][-1] = "out"
    commands["bake resampled"] = [*commands["bake"], "--resample", "0.01"]
    commands["evaluate"] = ["evaluate", "capture.npz", "--every", "4"]
    commands["info"] = ["info", "rig.npz"]
    del commands["train-dictionary"]
    before = _contents(folder)
    said = _without("scipy", folder, commands)
    assert said.pop("info")[0] == 0 and said.pop("pose")[0] == 0
    (folder / "out.npz").unlink()
    assert _contents(folder) == before
    for name, (code, error) in said.items():
        assert code == 1, name
        assert "needs scipy" in error and "pip install scipy" in error, name
        assert error.count("\n") == 1, f"{name} worked long before it said so: {error}"


def test_without_torch_all_but_the_training_works(folder):
    commands = {name: [*VERBS[name], "-o", f"x{ENDINGS[name]}"] for name in ("pose", "resample")}
    commands["train-dictionary"] = [*VERBS["train-dictionary"], "-o", "d.npz"]
    commands["evaluate"] = ["evaluate", "capture.npz", "--every", "4", "--methods", "mlp"]
    said = _without("torch", folder, commands)
    for name in ("pose", "resample"):
        assert said[name][0] == 0, said[name]
        (folder / f"x{ENDINGS[name]}").unlink()
    for name in ("train-dictionary", "evaluate"):
        code, error = said[name]
        assert code == 1 and "torch" in error and "Traceback" not in error, name
    assert "pip install torch" in said["train-dictionary"][1]


@pytest.mark.parametrize(
    "code", ["raise ImportError('wrong ELF class', name='scipy')", "raise ImportError('wrong ELF class')"]
)
def test_a_library_that_cannot_be_loaded(folder, tmp_path, monkeypatch, capsys, code):
    (tmp_path / "scipy").mkdir()
    (tmp_path / "scipy" / "__init__.py").write_text(code)
    for name in [name for name in sys.modules if name.partition(".")[0] == "scipy"]:
        monkeypatch.delitem(sys.modules, name)
    monkeypatch.syspath_prepend(tmp_path)
    monkeypatch.chdir(folder)
    assert main([*VERBS["rig"], "-o", "x.npz"]) == 1
    error = capsys.readouterr().err
    assert "cannot be loaded (wrong ELF class)" in error and "pip install --force-reinstall scipy" in error


def test_a_bug_is_not_taken_for_a_missing_library(folder, monkeypatch):
    from gaussianimate.core.formats import captures

    def broken(*_):
        raise ModuleNotFoundError("No module named 'gaussianimate.core.oops'", name="gaussianimate.core.oops")

    monkeypatch.setattr(captures, "find_files", broken)
    with pytest.raises(ModuleNotFoundError):
        main(["info", str(folder / "capture.npz")])


def test_folders_made_go_again_unless_something_is_in_them(tmp_path):
    (tmp_path / "mine").mkdir()
    with pytest.raises(RuntimeError), made_folder(tmp_path / "mine" / "a" / "b"):
        raise RuntimeError
    assert not list((tmp_path / "mine").iterdir())
    with pytest.raises(RuntimeError), made_folder(tmp_path / "mine"):
        raise RuntimeError
    assert (tmp_path / "mine").is_dir(), "it was there before"
    with pytest.raises(RuntimeError), made_folder(tmp_path / "mine" / "a" / "b") as folder:
        (folder / "kept").touch()
        raise RuntimeError
    assert (tmp_path / "mine" / "a" / "b" / "kept").exists()


def test_asking_whether_a_folder_can_be_written_to_leaves_no_trace(tmp_path):
    require_writable_folder(tmp_path / "a" / "b")
    (tmp_path / "file").touch()
    with pytest.raises(FormatError, match="the folder cannot be made"):
        require_writable_folder(tmp_path / "file" / "b")
    assert [path.name for path in tmp_path.iterdir()] == ["file"]


def test_a_drive_that_is_not_there_is_told(monkeypatch):
    """On Windows it is its own parent."""
    monkeypatch.setattr(atomic_file.os.path, "lexists", lambda _: False)

    def refuse(**_):
        raise FileNotFoundError(2, "No such file or directory")

    monkeypatch.setattr(atomic_file.tempfile, "TemporaryFile", refuse)
    with pytest.raises(FormatError, match="the folder cannot be made"):
        require_writable_folder(Path("/gone/deep"))
