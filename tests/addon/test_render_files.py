"""Names of rendered files."""

import pytest

from gaussianimate.core.errors import FormatError
from gaussianimate.operators.render_files import frame_files


@pytest.mark.parametrize(
    "name, frames, expected",
    [
        ("a.png", (7, 7), ["a.png"]),
        ("a", (7, 7), ["a.exr"]),
        ("a.EXR", (7, 7), ["a.exr"]),
        ("a.b", (1, 2), ["a.b_0001.exr", "a.b_0002.exr"]),
        ("a.png", (9, 10), ["a_0009.png", "a_0010.png"]),
        ("a_##.png", (9, 10), ["a_09.png", "a_10.png"]),
        ("a#b##.png", (5, 5), ["a#b05.png"]),
        ("a##_left.png", (5, 5), ["a05_left.png"]),
        ("#.png", (99, 100), ["099.png", "100.png"]),
        ("a.png", (-1, 0), ["a_-0001.png", "a_0000.png"]),
        ("new/a.png", (1, 1), ["new/a.png"]),
        ("new/", (1, 1), ["new/name_0001.exr"]),
    ],
)
def test_names_of_files(tmp_path, name, frames, expected):
    files = frame_files(f"{tmp_path}/{name}", "name", "OPEN_EXR", *frames)
    assert list(files.values()) == [tmp_path / name for name in expected]
    assert list(files) == list(range(frames[0], frames[1] + 1))
    assert not list(tmp_path.iterdir()), "the folder is made when there is a picture"


@pytest.mark.parametrize(
    "name, frames, message",
    [
        ("a.jpg", (1, 1), "to .png or .exr files"),
        ("a.mp4", (1, 9), "to .png or .exr files"),
        ("a.png", (2, 1), "the last frame, 1, comes before the first, 2"),
        ("a.png", (-1048575, 1), "Blender has frames from -1048574 to 1048574, and none of number -1048575"),
        ("file/a.png", (1, 1), "the folder cannot be made"),
    ],
)
def test_names_that_are_refused(tmp_path, name, frames, message):
    (tmp_path / "file").touch()
    with pytest.raises(FormatError, match=message):
        frame_files(f"{tmp_path}/{name}", "name", "PNG", *frames)


def test_no_name_is_refused():
    with pytest.raises(FormatError, match="no file was given"):
        frame_files("", "name", "PNG", 1, 1)
