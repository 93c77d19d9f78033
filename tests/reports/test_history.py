from watchdog.evidence import Mark
from watchdog.reports.history import history_lines


def new_group(number, age_s=5.0):
    detail = f"group default, number {number}, took 0.001 s, at actor.py:94 connect"
    return Mark("collective", "new_group", age_s, detail)


def test_calls_that_differ_in_number_and_time_alone_are_one_line():
    lines = history_lines([new_group(number, 5.0 - number / 10) for number in range(1, 17)])

    assert lines == [
        "4.9 s to 3.4 s before: collective new_group x16, group default, at actor.py:94 connect"
    ]


def test_a_single_call_keeps_its_number_and_time():
    (line,) = history_lines([new_group(7)])

    assert "number 7, took 0.001 s" in line


def test_a_phase_says_how_often_it_was_marked():
    lines = history_lines([Mark("phase", "read_weights", 5.0, "", 23, 1.0)])

    assert lines == ["5.0 s to 1.0 s before: phase read_weights x23"]


def test_a_loop_is_told_once_with_its_rounds():
    loop = [
        Mark("phase", name, 9.0 - i) for i in range(5) for name in ("read_weights", "send_chunk")
    ]

    lines = history_lines([Mark("section", "weight_sync", 9.9), *loop, Mark("phase", "end", 0.5)])

    assert lines == [
        "9.9 s before: section weight_sync",
        "9.0 s before: phase read_weights",
        "9.0 s before: phase send_chunk",
        "  … these 2 lines x5, until 5.0 s before",
        "0.5 s before: phase end",
    ]


def test_calls_from_different_places_stay_apart():
    other = Mark("collective", "new_group", 4.0, "group default, at actor.py:99 connect")

    assert len(history_lines([new_group(1), other])) == 2
