"""Where the bytes of learned motion lie: in a text data-block, or in a file beside the .blend.

Blender copies an armature with all its properties at every change of the pose, and a text never. Motion of
more than `LARGEST` bytes lies in a file from the moment the .blend is saved, as undo steps and saves would
carry it along. Its name holds the beginning of its digest, by which it is found again where its path leads
nowhere: after an undo across Save As, or where linked data were made local.
"""

from __future__ import annotations

import hashlib
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import bpy
from bpy.app.handlers import persistent

from ..core.atomic_file import replacing
from ..core.errors import GaussiAnimateError, RigError

MOTION = "gaussianimate_motion"  # property of the armature data: digest, joints, skin, text or file
BYTES = "gaussianimate_bytes"  # property of the text
LARGEST = 100 * 2**20  # bytes that are packed in a saved .blend

# Of the save that runs: session numbers of armature data and text (0: none), and the file before ("": none).
_placed: list[tuple[int, int, str]] = []


def kept_with(data: bpy.types.Armature) -> Any:
    """What is kept with armature data; None where nothing is, or what has that name is something else."""
    kept: Any = data.get(MOTION)
    names = kept.keys() if hasattr(kept, "keys") else ()
    return kept if {"digest", "joints", "skin"} <= set(names) else None


def packed_motion(data: bpy.types.Armature) -> bytes:
    """Return the bytes of the motion kept with armature data.

    Raises
    ------
    RigError : they are gone or damaged
    """
    kept = kept_with(data)
    if "file" in kept:
        return _beside(data, kept)
    text = kept.get("text")
    if text is None or BYTES not in text:
        raise RigError(f"The motion of '{data.name}' was deleted; build the rig again from the capture.")
    packed = text[BYTES]
    if not isinstance(packed, bytes) or not _is_it(packed, kept):
        raise RigError(f"The motion of '{data.name}' is damaged; build the rig again from the capture.")
    return packed


def drop_text(kept: Any) -> None:
    """Remove the packed bytes, unless another armature has them too."""
    text = kept.get("text")
    if text is not None:
        del kept["text"]
        if text.users == 0:
            bpy.data.texts.remove(text)


def _is_it(packed: bytes, kept: Any) -> bool:
    return hashlib.sha256(packed).hexdigest() == kept["digest"]


def _beside(data: bpy.types.Armature, kept: Any) -> bytes:
    path = Path(bpy.path.abspath(kept["file"], library=data.library))
    problem = None
    for each in (path, *_namesakes(path, kept)):
        try:
            packed = each.read_bytes()
        except OSError as error:
            problem = problem or RigError(
                f"{path}, the motion of '{data.name}', cannot be read ({error.strerror or error}); put it "
                "back beside the .blend, or build the rig again."
            )
            continue
        if _is_it(packed, kept):
            return packed
        problem = problem or RigError(
            f"{path} is not the motion of '{data.name}'; put that back, or build the rig again."
        )
    assert problem is not None
    raise problem


def _namesakes(path: Path, kept: Any) -> Iterator[Path]:
    """Files that should hold the same, beside the one wanted and beside the libraries of the .blend."""
    libraries = (Path(bpy.path.abspath(library.filepath)).parent for library in bpy.data.libraries)
    for folder in dict.fromkeys((path.parent, *libraries)):
        for found in sorted(folder.glob(f"*.{kept['digest'][:8]}.motion.npz")):
            if found != path:
                yield found


@persistent
def _before_save(path: str, *_: Any) -> None:
    """Large motions lie beside the file that is saved, wherever they lay before."""
    _placed.clear()
    if not path:
        return
    for data in bpy.data.armatures:
        if data.library is None and kept_with(data) is not None:
            try:
                _place(data, Path(path))
            except (
                GaussiAnimateError,
                OSError,
            ) as error:  # it stays where it is, the file itself must still be saved
                print(f"GaussiAnimate: {error}")


def _place(data: bpy.types.Armature, blend: Path) -> None:
    kept = kept_with(data)
    name = f"{blend.stem}.{bpy.path.clean_name(data.name)}.{kept['digest'][:8]}.motion.npz"
    target, before = blend.parent / name, kept.get("file", "")
    if before == f"//{name}" and _is_open(blend) and target.exists():
        return
    packed = packed_motion(data)
    if not before and len(packed) <= LARGEST:
        return
    if not target.exists() or not _is_it(target.read_bytes(), kept):
        with replacing(target) as temporary:
            temporary.write_bytes(packed)
    text = kept.get("text")
    _placed.append((data.session_uid, 0 if text is None else text.session_uid, before))
    kept["file"] = f"//{name}"
    if text is not None:
        del kept["text"]  # without users it is not written


def _is_open(blend: Path) -> bool:
    return bool(bpy.data.filepath) and Path(bpy.data.filepath).resolve() == blend.resolve()


@persistent
def _after_save(path: str, *_: Any) -> None:
    """What lies beside the file that is open now is packed no more; of a copy elsewhere nothing is kept."""
    if path and not _is_open(Path(path)):
        _put_back()
        return
    texts = {number for _, number, _ in _placed}
    for text in list(bpy.data.texts):
        if text.session_uid in texts and text.users == 0:
            bpy.data.texts.remove(text)
    _placed.clear()


@persistent
def _put_back(*_: Any) -> None:
    """Let motions lie where they lay before the save."""
    armatures = {data.session_uid: data for data in bpy.data.armatures}
    texts = {text.session_uid: text for text in bpy.data.texts}
    for number, text, before in _placed:
        kept = kept_with(armatures[number])
        if text in texts:
            kept["text"] = texts[text]
        if before:
            kept["file"] = before
        else:
            del kept["file"]
    _placed.clear()


@persistent
def _after_import(imported: bpy.types.BlendImportContext, *_: Any) -> None:
    """Files lie beside the .blend that armatures were appended from, until this one is saved."""
    for item in imported.import_items:
        data = item.id
        if not isinstance(data, bpy.types.Armature) or data.library is not None:
            continue
        kept = kept_with(data)
        if kept is not None and kept.get("file", "").startswith("//") and item.source_library is not None:
            kept["file"] = bpy.path.abspath(kept["file"], library=item.source_library)


_HANDLERS = (
    ("save_pre", _before_save),
    ("save_post", _after_save),
    ("save_post_fail", _put_back),
    ("blend_import_post", _after_import),
)


def register() -> None:
    """Follow saving and appending."""
    for event, function in _HANDLERS:
        getattr(bpy.app.handlers, event).append(function)


def unregister() -> None:
    """Undo :func:`register`."""
    for event, function in _HANDLERS:
        getattr(bpy.app.handlers, event).remove(function)
