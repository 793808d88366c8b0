"""Splat sequences: order, correspondence, empty frames, and what is said about them."""

from importlib import import_module
from pathlib import Path

import numpy as np
import pytest

from gaussianimate.core.errors import Cancelled, FormatError
from gaussianimate.core.formats import read_capture


@pytest.fixture
def frames(splats, tmp_path):
    """Write a sequence whose x is the frame number; `change(frame, columns)` may alter it."""

    def write(numbers=range(1, 13), name="frame_{}.ply", degree=1, change=None, folder="capture"):
        for number in numbers:
            columns = splats.columns(10, degree)
            columns["x"][:] = number
            if change:
                change(number, columns)
            splats.write(f"{folder}/{name.format(number)}", columns)
        return tmp_path / folder

    return write


def test_frames_are_in_numeric_order_however_given(frames):
    folder = frames()
    files = list(folder.iterdir())
    np.random.default_rng(0).shuffle(files)
    for source in (folder, str(folder), folder / "frame_*.ply", f"{folder}/*", files):
        capture = read_capture(source)
        np.testing.assert_array_equal(capture.positions[:, 0, 0], np.arange(1, 13))
        assert capture.name == "frame"
        assert capture.frame_valid.all() and capture.faces is None and capture.up is None
        assert any("12 frames of 10 splats" in note for note in capture.notes)


@pytest.mark.parametrize("folder", ["take [1]", "why? ü 東京 * 'x'", "[ab]/[cd]"])
def test_folders_may_be_called_like_patterns(frames, folder):
    made = frames(folder=folder)
    for source in (made, f"{made}/frame_*.ply", made.parent / "*" / "frame_?.ply", str(made / "frame_1.ply")):
        capture = read_capture(source)
        assert capture.frame_count == {"*.ply": 12, "?.ply": 9, "1.ply": 1}.get(str(source)[-5:], 12)


def test_files_that_went_away_are_told(frames):
    files = sorted(frames(numbers=range(1, 4)).iterdir())
    for gone in (files[1], files[0]):
        gone.unlink()
        with pytest.raises(FormatError, match=f"{gone.name}.*cannot be opened"):
            read_capture(files)
    with pytest.raises(FormatError, match="no file or folder was given"):
        read_capture("")


def test_a_folder_that_cannot_be_looked_into_is_told(frames, monkeypatch):
    folder = frames()

    def shut(path):
        raise PermissionError(13, "Permission denied", str(path))

    monkeypatch.setattr(Path, "iterdir", shut)
    for source in (folder, folder / "frame_99.ply"):
        with pytest.raises(FormatError, match=r"capture: cannot be looked into \(Permission denied\)"):
            read_capture(source)


def test_frames_load_on_demand_and_match_the_positions(frames):
    capture = read_capture(frames())
    for frame in (0, 5, 11):
        cloud = capture.load_cloud(frame)
        np.testing.assert_array_equal(cloud.positions, capture.positions[frame])
        assert cloud.sh_degree == 1


def test_one_file_is_a_capture_of_one_frame(splats):
    capture = read_capture(splats.write("my cat.ply"))
    assert (capture.frame_count, capture.point_count, capture.name) == (1, 8, "my cat")
    assert len(capture.load_cloud(0)) == 8


def test_rows_bad_in_any_frame_are_dropped_from_all(frames):
    def change(number, columns):
        if number == 3:
            columns["y"][2] = np.nan
        if number == 7:
            columns["f_rest_1"][8] = np.inf

    capture = read_capture(frames(change=change))
    assert capture.positions.shape == (12, 8, 3) and np.isfinite(capture.positions).all()
    kept = np.delete(np.arange(10), [2, 8])
    whole = read_capture(frames(folder="whole"))
    for frame in range(12):
        np.testing.assert_array_equal(capture.load_cloud(frame).sh, whole.load_cloud(frame).sh[kept])
    assert any("2 of 10 splats were dropped" in note for note in capture.notes)


@pytest.mark.parametrize("kind", ["zero vertices", "zero bytes", "all bad"])
def test_an_empty_frame_shows_nothing_and_the_rest_plays(frames, splats, kind):
    folder = frames(range(1, 6))
    path = folder / "frame_3.ply"
    if kind == "zero bytes":
        path.write_bytes(b"")
    elif kind == "zero vertices":
        path.write_bytes(splats.bytes({name: np.zeros(0, "f4") for name in splats.names(1)}))
    else:
        path.write_bytes(splats.bytes({k: v * np.nan for k, v in splats.columns(10, 1).items()}))
    capture = read_capture(folder)
    np.testing.assert_array_equal(capture.frame_valid, [1, 1, 0, 1, 1])
    assert np.isnan(capture.positions[2]).all() and np.isfinite(capture.positions[[0, 1, 3, 4]]).all()
    assert capture.point_count == 10
    assert any("1 of the frames are empty (2" in note for note in capture.notes)
    with pytest.raises(FormatError, match=r"frame_3.ply \(frame 2\): the frame is empty"):
        capture.load_cloud(2)


def test_an_empty_first_frame(frames):
    folder = frames(range(1, 4))
    (folder / "frame_1.ply").write_bytes(b"")
    capture = read_capture(folder)
    np.testing.assert_array_equal(capture.frame_valid, [0, 1, 1])
    assert len(capture.load_cloud(1)) == 10


def test_nothing_but_empty_frames(frames):
    folder = frames(range(1, 4))
    for path in folder.iterdir():
        path.write_bytes(b"")
    with pytest.raises(FormatError, match="all of its 3 files are empty"):
        read_capture(folder)


def test_differing_counts_name_frame_file_and_counts(frames, splats):
    folder = frames(range(1, 6))
    splats.write("capture/frame_4.ply", splats.columns(9, 1))
    with pytest.raises(FormatError) as info:
        read_capture(folder)
    text = str(info.value)
    assert "frame_4.ply (frame 3)" in text and "9 splats where frame_1.ply has 10" in text
    assert info.value.frame == 3


def test_a_damaged_frame_is_named(frames):
    folder = frames(range(1, 6))
    path = folder / "frame_5.ply"
    path.write_bytes(path.read_bytes()[:-7])
    with pytest.raises(FormatError, match=r"frame_5.ply \(frame 4\): the file is cut short"):
        read_capture(folder)


def test_frames_of_differing_degree_share_the_lowest(frames):
    folder = frames(range(1, 3), degree=2)
    frames(range(3, 5), degree=1)
    capture = read_capture(folder)
    assert [capture.load_cloud(i).sh_degree for i in range(4)] == [1, 1, 1, 1]
    assert any("degree 1 was read" in note for note in capture.notes)


def test_no_matching_files_show_what_was_searched_and_found(tmp_path):
    for name in ("a.txt", "b.txt", "c.PNG", "noext"):
        (tmp_path / name).write_bytes(b"x")
    for source in (tmp_path, tmp_path / "frame_*.ply"):
        with pytest.raises(FormatError) as info:
            read_capture(source)
        text = str(info.value)
        assert "no matching files" in text and "2 .txt" in text and "1 .png" in text
        assert ("frame_*.ply" if "*" in str(source) else str(tmp_path / "*")) in text
    with pytest.raises(FormatError, match="no such file or folder; the folder holds 2 .txt"):
        read_capture(tmp_path / "missing.ply")
    with pytest.raises(FormatError, match="no such file or folder"):
        read_capture(tmp_path / "nowhere" / "missing.ply")
    with pytest.raises(FormatError, match="no files were chosen"):
        read_capture([])


def test_a_folder_with_strangers_reads_its_majority(frames):
    folder = frames(range(1, 4))
    (folder / "cameras.json").write_text("{}")
    (folder / ".frame_9.ply.tmp").write_bytes(b"")
    (folder / "preview.obj").write_text("v 0 0 0")
    capture = read_capture(folder)
    assert capture.frame_count == 3
    assert any("not the 1 .obj" in note for note in capture.notes)


def test_names_with_any_letters(frames):
    capture = read_capture(frames(range(1, 4), name="frame ünï #{}.ply", folder="кадр 東京 [1]"))
    assert capture.frame_count == 3 and len(capture.load_cloud(2)) == 10


def test_compressed_sequence(frames, tmp_path):
    gaussforge = import_module("gaussforge")
    folder = frames(range(9, 12))
    (tmp_path / "spz").mkdir()
    for path in folder.iterdir():
        data = gaussforge.GaussForge().convert(path.read_bytes(), "ply", "spz")["data"]
        (tmp_path / "spz" / f"{path.stem}.spz").write_bytes(data)
    capture = read_capture(tmp_path / "spz")
    np.testing.assert_allclose(capture.positions[:, 0, 0], [9, 10, 11], atol=1e-3)
    np.testing.assert_array_equal(capture.load_cloud(1).positions, capture.positions[1])
    assert sum("SPZ" in note for note in capture.notes) == 1


def test_reading_can_be_cancelled(frames):
    calls = []

    def cancel(stage, fraction):
        calls.append((stage, fraction))
        if fraction > 0.5:
            raise Cancelled("cancelled")

    with pytest.raises(Cancelled):
        read_capture(frames(), cancel)
    assert calls[0] == ("Reading frames", 0.0) and len(calls) < 20


def test_folders_may_be_the_frames(frames, tmp_path):
    for number in range(8, 13):
        frames([number], name="point_cloud.ply", folder=f"run/frame_{number}")
    for pattern in ("run/frame_*/point_cloud.ply", "run/**/*.ply"):
        capture = read_capture(tmp_path / pattern)
        np.testing.assert_array_equal(capture.positions[:, 0, 0], np.arange(8, 13))


def test_one_large_file_reports_progress_and_can_be_cancelled(splats):
    path = splats.write(columns=splats.columns(20_000))
    fractions = []
    read_capture(path, lambda stage, fraction: fractions.append(fraction))
    assert len(fractions) > 4 and fractions == sorted(fractions) and fractions[-1] == 1

    def cancel(stage, fraction):
        if fraction > 0:
            raise Cancelled("cancelled")

    with pytest.raises(Cancelled):
        read_capture(path, cancel)
