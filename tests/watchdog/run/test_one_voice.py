"""Of all who would say the same, one does."""

from __future__ import annotations

import os
from concurrent.futures import ProcessPoolExecutor
from multiprocessing import get_context

import pytest

from watchdog.run.one_voice import is_first_to_say


def test_of_many_processes_one_is_the_first(tmp_path):
    with ProcessPoolExecutor(4, mp_context=get_context("spawn")) as pool:
        asked = [pool.submit(is_first_to_say, "it stalled", tmp_path) for _ in range(16)]
        answers = [answer.result(timeout=60) for answer in asked]

    assert sorted(answers) == [False] * 15 + [True]


def test_another_thing_to_say_has_a_first_of_its_own(tmp_path):
    assert is_first_to_say("it stalled", tmp_path)
    assert is_first_to_say("it went on", tmp_path)
    assert not is_first_to_say("it went on", tmp_path)


@pytest.mark.parametrize("place", ["missing", "a file"])
def test_where_no_mark_can_be_left_everybody_speaks(tmp_path, place):
    (tmp_path / "a file").write_text("")

    assert is_first_to_say("it stalled", tmp_path / place)
    assert is_first_to_say("it stalled", tmp_path / place)


def test_nothing_is_left_open(tmp_path):
    before = os.listdir("/proc/self/fd")

    is_first_to_say("it stalled", tmp_path)

    assert os.listdir("/proc/self/fd") == before
