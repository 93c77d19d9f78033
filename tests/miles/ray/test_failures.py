import pytest

pytest.importorskip("ray", exc_type=ImportError)

from ray.exceptions import ActorDiedError, RayTaskError

from miles.backends.sglang_utils.sglang_engine import EngineError
from miles.ray.failures import FailedCall, most_telling, own_words

pytestmark = pytest.mark.ray


def task_error(cause):
    text = f"ray::A.f() (pid=7, ip=10.0.0.1, actor_id=1, repr=<A>)\n{type(cause).__name__}: {cause}"
    return RayTaskError("f", text, cause).as_instanceof_cause()


def died(text):
    error = ActorDiedError()
    error.error_msg = text
    return error


GONE = died(
    "The actor died unexpectedly before finishing this task.\n\tclass_name: A\n\tpid: 8\n"
    "\tnamespace: n\n\tip: 10.0.0.2\nThe actor is dead because its worker process has died. "
    "Worker exit type: SYSTEM_ERROR. Some common causes include: (1) a, (2) b."
)
VICTIM = FailedCall("rank 0", task_error(RuntimeError("[gloo] Connection closed by peer [::1]")))


def test_an_error_is_told_in_the_words_of_the_one_who_raised_it():
    nested = task_error(task_error(EngineError("engine 0 is gone")))

    assert str(FailedCall("rank 3", nested)) == (
        "rank 3 (pid 7 on 10.0.0.1) failed: EngineError: engine 0 is gone"
    )


def test_a_dead_process_is_told_without_rays_guesses():
    assert str(FailedCall("rank 1", GONE)) == (
        "rank 1 (pid 8 on 10.0.0.2) is gone: The actor is dead because its worker process has "
        "died. Worker exit type: SYSTEM_ERROR."
    )


def test_the_dead_process_is_blamed_however_late_the_news():
    dead = FailedCall("rank 1", GONE)

    assert most_telling([VICTIM, dead]) is dead


def test_who_raised_is_blamed_before_who_lost_a_connection():
    raised = FailedCall("rank 1", task_error(EngineError("engine 0 is gone")))

    assert most_telling([VICTIM, raised]) is raised


def test_a_lone_victim_is_blamed_for_want_of_another():
    assert most_telling([VICTIM]) is VICTIM


def test_a_constructors_error_is_told_by_its_last_line():
    error = died("The actor died because of an error.\nTraceback:\n  f()\nOSError: full")

    assert own_words(error) == "OSError: full"
