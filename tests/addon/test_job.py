"""The job runner: results, errors and cancelling, without a window (tests/gui has the rest)."""

import threading
import time

import bpy
import pytest

from gaussianimate.core.errors import Cancelled, CaptureError
from gaussianimate.gaussianimate_addon import job as jobs


class Probe(jobs.JobOperator, bpy.types.Operator):
    """Adds a mesh object named after the thread that worked."""

    bl_idname = "gaussianimate_test.probe"
    bl_label = "Probe"
    bl_options = {"REGISTER"}

    fail: bpy.props.StringProperty()

    def prepare(self, context):
        if self.fail == "prepare":
            raise CaptureError("The capture has no frames; import it again")
        return self.fail

    @staticmethod
    def work(state, progress):
        for i in range(5):
            progress("Counting", i / 5)
            time.sleep(0.01)
        if state == "work":
            raise CaptureError("The capture has no points; import another")
        if state == "bug":
            raise ZeroDivisionError("a bug")
        if state == "cancel":
            raise Cancelled("cancelled")
        return threading.current_thread().name, state

    def apply(self, context, result):
        name, state = result
        mesh = bpy.data.meshes.new(name)
        context.collection.objects.link(bpy.data.objects.new(name, mesh))
        if state == "apply":
            raise RuntimeError("half done")


@pytest.fixture
def probe(empty_scene):
    bpy.utils.register_class(Probe)
    yield bpy.ops.gaussianimate_test.probe
    bpy.utils.unregister_class(Probe)
    assert jobs.running() is None, "a job left its lock behind"


def test_works_in_a_thread_and_applies(probe, capfd):
    assert probe() == {"FINISHED"}
    assert [o.name for o in bpy.data.objects] == ["gaussianimate-job"]
    assert "Probe: Counting" in capfd.readouterr().err


@pytest.mark.parametrize(
    "where, message",
    [("prepare", "has no frames; import it again"), ("work", "has no points; import another")],
)
def test_a_users_mistake_is_one_sentence(probe, capfd, where, message):
    with pytest.raises(RuntimeError, match=message):
        probe(fail=where)
    assert "Traceback" not in capfd.readouterr().err
    assert not bpy.data.objects


def test_a_bug_keeps_its_traceback(probe, capfd):
    with pytest.raises(RuntimeError, match=r"Probe failed \(ZeroDivisionError: a bug\)"):
        probe(fail="bug")
    assert 'raise ZeroDivisionError("a bug")' in capfd.readouterr().err


def test_cancelled_work_changes_nothing(probe):
    assert probe(fail="cancel") == {"CANCELLED"}
    assert not bpy.data.objects


def test_a_failing_apply_leaves_nothing_half_done(probe):
    with pytest.raises(RuntimeError, match="half done"):
        probe(fail="apply")
    assert not bpy.data.objects and not bpy.data.meshes


def test_result_is_one_undo_step(probe):
    bpy.ops.ed.undo_push(message="before")
    assert probe() == {"FINISHED"}
    bpy.ops.ed.undo()
    assert not bpy.data.objects
    bpy.ops.ed.redo()
    assert len(bpy.data.objects) == 1


def run(job, seconds=5.0):
    end = time.monotonic() + seconds
    while not job.done and time.monotonic() < end:
        job.advance(0.05)
    assert job.done


def test_steps_on_the_main_thread_come_before_the_work():
    seen = []

    def steps():
        for i in range(3):
            seen.append(threading.current_thread() is threading.main_thread())
            yield "Sampling", i / 3
        return "state"

    job = jobs.Job("Probe", steps(), lambda state, progress: (state, threading.current_thread().name))
    run(job)
    assert job.result() == ("state", "gaussianimate-job")
    assert seen == [True] * 3


def test_cancelling_restores_what_the_steps_changed():
    restored = []

    def steps():
        try:
            while True:
                yield "Sampling", 0.5
        finally:
            restored.append(True)

    job = jobs.Job("Probe", steps(), lambda state, progress: None)
    job.advance(0.01)
    assert (job.stage, job.fraction) == ("Sampling", 0.5)
    job.cancel()
    assert job.done and restored == [True]
    with pytest.raises(Cancelled):
        job.result()


def test_an_error_in_the_steps_is_the_jobs_error():
    def steps():
        yield "Sampling", 0.0
        raise CaptureError("The mesh changes at frame 7; sample a shorter range")

    job = jobs.Job("Probe", steps(), lambda state, progress: None)
    run(job)
    with pytest.raises(CaptureError, match="frame 7"):
        job.result()


def test_cancel_answers_at_once_and_the_next_job_waits_for_the_thread():
    release, ended = threading.Event(), threading.Event()

    def stubborn(state, progress):
        progress("Solving", 0.0)
        release.wait(10)  # a long call between two progress reports
        ended.set()
        progress("Solving", 1.0)

    first = jobs.Job("First", None, stubborn)
    first.advance(0.02)
    first.cancel()
    assert first.done, "Esc must not wait for the thread"
    second = jobs.Job("Second", None, lambda state, progress: ended.is_set())
    second.advance(0.02)
    assert not second.done
    release.set()
    run(second)
    assert second.result() is True
    with pytest.raises(Cancelled):
        first.result()


def test_only_one_job_at_a_time(probe, monkeypatch):
    other = jobs.Job("Build Rig", None, lambda state, progress: None)
    monkeypatch.setattr(jobs, "_running", other)
    with pytest.raises(RuntimeError, match="Build Rig is running; press Esc to cancel it"):
        probe()
    monkeypatch.undo()
    run(other)


def test_disabling_the_add_on_stops_the_job(monkeypatch):
    def endless(state, progress):
        while True:
            progress("Counting", 0.0)
            time.sleep(0.01)

    job = jobs.Job("Endless", None, endless)
    monkeypatch.setattr(jobs, "_running", job)
    jobs.stop_all()
    assert jobs.running() is None and job.done
    assert not [t for t in threading.enumerate() if t.name == "gaussianimate-job"]
