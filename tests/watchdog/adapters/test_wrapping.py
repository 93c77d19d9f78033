import asyncio
import inspect

import pytest

from watchdog.adapters.hook import Hook
from watchdog.adapters.wrapping import wrapped
from watchdog.blackbox.writing import BlackBox
from watchdog.recording import recorder as recorder_module
from watchdog.recording.recorder import Recorder

READ = Hook("m", "f", "phase", "read_weights")


@pytest.fixture
def recorder(monkeypatch):
    recorder = Recorder(BlackBox.anonymous({}))
    monkeypatch.setattr(recorder_module.active, "recorder", recorder)
    recorder.begin_section("weight_sync", {})
    recorder.begin_phase("outer")
    return recorder


def phase_now(recorder):
    return recorder.open_section.phase


def plain():
    """Plain."""


def generator():
    yield


async def coroutine():
    """Coroutine."""


async def async_generator():
    yield


@pytest.mark.parametrize("original", [plain, generator, coroutine, async_generator])
def test_a_wrapper_is_of_the_kind_of_what_it_wraps(original):
    for hook in (READ, Hook("m", "f", "section")):
        wrapper = wrapped("miles", hook, original)

        for is_kind in (
            inspect.iscoroutinefunction,
            inspect.isgeneratorfunction,
            inspect.isasyncgenfunction,
        ):
            assert is_kind(wrapper) == is_kind(original)
        assert wrapper.__name__ == original.__name__
        assert wrapper.__wrapped__ is original


def test_a_function_is_a_phase_while_it_runs(recorder):
    read = wrapped("miles", READ, lambda: phase_now(recorder))

    assert read() == "read_weights"
    assert phase_now(recorder) == "outer"


def test_a_phase_may_lead_over_to_the_next_one(recorder):
    read = wrapped("miles", READ._replace(then="send_chunk"), lambda: None)

    read()

    assert phase_now(recorder) == "send_chunk"


def test_exceptions_pass_through_untouched(recorder):
    error = RuntimeError("of the host")

    def fail():
        raise error

    with pytest.raises(RuntimeError) as caught:
        wrapped("miles", READ, fail)()

    assert caught.value is error
    assert phase_now(recorder) == "outer"


def test_a_generator_is_a_phase_while_it_runs_and_not_while_its_consumer_does(recorder):
    def chunks():
        got = yield phase_now(recorder)
        yield got, phase_now(recorder)
        return "done"

    iterator = wrapped("miles", READ, chunks)()

    assert next(iterator) == "read_weights"
    assert phase_now(recorder) == "outer"
    assert iterator.send("sent") == ("sent", "read_weights")
    with pytest.raises(StopIteration) as stop:
        next(iterator)
    assert stop.value.value == "done"


def test_what_is_thrown_into_a_generator_arrives(recorder):
    def chunks():
        try:
            yield 1
        except KeyError as error:
            yield f"caught {error}"

    iterator = wrapped("miles", READ, chunks)()
    next(iterator)

    assert iterator.throw(KeyError("thrown")) == "caught 'thrown'"


def test_a_generator_that_is_closed_cleans_up(recorder):
    closed = []

    def chunks():
        try:
            yield 1
        finally:
            closed.append(True)

    iterator = wrapped("miles", READ, chunks)()
    next(iterator)
    iterator.close()

    assert closed == [True]


def test_an_async_function_is_a_phase_until_it_is_done(recorder):
    async def send():
        await asyncio.sleep(0)
        return phase_now(recorder)

    assert asyncio.run(wrapped("miles", READ, send)()) == "read_weights"
    assert phase_now(recorder) == "outer"


def test_an_async_generator_is_a_phase_while_it_runs(recorder):
    async def chunks():
        yield phase_now(recorder)
        await asyncio.sleep(0)
        yield phase_now(recorder)

    async def consume():
        return [(item, phase_now(recorder)) async for item in wrapped("miles", READ, chunks)()]

    assert asyncio.run(consume()) == [("read_weights", "outer")] * 2


def test_an_observer_sees_arguments_and_result_and_cannot_fail_the_caller(capfd):
    seen = []

    def observe(args, kwargs, result):
        seen.append((args, kwargs, result))
        raise RuntimeError("of the observer")

    watched = wrapped("miles", Hook("m", "f", "observe", observe=observe), lambda a, b: a + b)

    assert watched(1, b=2) == 3
    assert seen == [((1,), {"b": 2}, 3)]


def test_outside_of_a_section_a_phase_is_nothing(monkeypatch):
    monkeypatch.setattr(recorder_module.active, "recorder", None)

    assert wrapped("miles", READ, lambda: 5)() == 5
