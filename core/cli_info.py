"""``python -m gaussianimate info``: what a capture, cloud or rig file holds."""

from __future__ import annotations

import argparse
from typing import TYPE_CHECKING, Any

import numpy as np

from .cli_console import printable

if TYPE_CHECKING:
    from .rigging.rig import Rig


def add_info(commands: Any) -> None:
    """Add the command to the parser of the program."""
    info = commands.add_parser("info", help="say what a capture, cloud or rig file holds")
    info.add_argument("file", metavar="FILE")
    info.set_defaults(run=_info)


def joints_text(rig: Rig) -> str:
    """Return how many joints there are, and how many of them move something, which is what Blender counts."""
    from .rigging.moving_joints import moving_joints

    moving = int(moving_joints(rig).sum())
    ends = rig.joint_count - moving
    return f"{rig.joint_count}" + f", {moving} that move and {ends} that end a chain" * (ends > 0)


def _info(options: argparse.Namespace) -> None:
    from .rigging.rig_file import is_rig

    for name, value in (_rig_facts if is_rig(options.file) else _capture_facts)(options.file):
        print(printable(f"{name}: {value}"))


def _rig_facts(path: str) -> list[tuple[str, object]]:
    from .rigging.rig_file import load_rig

    rig = load_rig(path)
    parents = ["" if parent < 0 else f" < {rig.joint_names[parent]}" for parent in rig.joint_parents]
    return [
        ("rig", path),
        ("points", rig.point_count),
        ("frames", f"{rig.frame_count} ({rig.frames.min()} to {rig.frames.max()}) at {rig.fps:g} a second"),
        ("rest pose", f"frame {rig.canonical_frame}"),
        ("bones", rig.bone_count),
        ("influences", rig.indices.shape[1]),
        ("joints", joints_text(rig)),
        *(
            (f"  {name}{parent}", np.round(x, 4))
            for name, parent, x in zip(rig.joint_names, parents, rig.joint_positions, strict=True)
        ),
    ]


def _capture_facts(path: str) -> list[tuple[str, object]]:
    from .formats import read_capture

    capture = read_capture(path)
    valid = np.flatnonzero(capture.frame_valid)
    first = capture.positions[valid[0]]
    low, high = first.min(axis=0), first.max(axis=0)
    facts: list[tuple[str, object]] = [
        ("capture", capture.name),
        ("points", capture.point_count),
        (
            "frames",
            f"{capture.frame_count}" + (f", {len(valid)} usable" * (len(valid) < capture.frame_count)),
        ),
        ("frame rate", "unknown" if capture.fps is None else f"{capture.fps:g} a second"),
        ("up axis", capture.up or "unknown"),
        ("size", " x ".join(f"{side:.4g}" for side in high - low)),
    ]
    if capture.clips is not None:
        facts.append(("clips", len(np.unique(capture.clips))))
    if capture.skeleton is not None:
        facts.append(("given joints", len(capture.skeleton)))
    if capture.faces is not None:
        facts.append(("triangles", len(capture.faces)))
    if capture.load_cloud is not None:
        facts.append(("SH degree", capture.load_cloud(int(valid[0])).sh_degree))
    return facts + [("note", note) for note in capture.notes]
