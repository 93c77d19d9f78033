import math

from watchdog.sentinel.silence import Silence


def told_at(looks: list[tuple[float, int]]) -> list[float]:
    silence = Silence()
    return [silent_s for silent_s, num_ended in looks if silence.is_to_be_told(silent_s, num_ended)]


def test_a_silence_of_some_seconds_is_an_import_and_not_told():
    assert told_at([(second, 0) for second in range(10)]) == []


def test_a_day_of_silence_is_told_a_few_times():
    told = told_at([(float(second), 0) for second in range(86_400)])

    assert told[0] == 11.0
    assert len(told) < 8


def test_who_spoke_in_between_is_told_of_anew():
    assert told_at([(11.0, 0), (0.5, 0), (11.0, 0)]) == [11.0, 11.0]


def test_an_end_is_told_at_once_and_once():
    assert told_at([(11.0, 0), (12.0, 0), (math.inf, 2), (math.inf, 2)]) == [11.0, math.inf]
