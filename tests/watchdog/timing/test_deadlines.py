import pytest

from watchdog.settings import Settings
from watchdog.timing.deadlines import Deadlines


def deadlines(*durations_s, **settings):
    learned = Deadlines(Settings(**settings))
    for took_s in durations_s:
        learned.learn("weight_sync", took_s)
    return learned


def test_the_first_three_syncs_get_five_minutes():
    assert deadlines(900, 900).of_section("weight_sync", None)[0] == 300


def test_then_it_is_four_times_the_longest():
    assert deadlines(20, 50, 30).of_section("weight_sync", None)[0] == 200


def test_but_at_least_a_minute():
    assert deadlines(1, 2, 1).of_section("weight_sync", None)[0] == 60


def test_never_more_than_forty_percent_of_the_groups_own_timeout():
    deadline_s, reason = deadlines().of_section("weight_sync", 600)

    assert deadline_s == 240
    assert "600 s" in reason


def test_what_was_set_is_taken_as_given():
    set_by_hand = deadlines(stall_after_s=500.0)

    assert set_by_hand.of_section("weight_sync", 600) == (500, "set")
    assert "240 s or less" in set_by_hand.warning(600)


@pytest.mark.parametrize("timeout_s", [None, 1800])
def test_a_safe_value_costs_no_warning(timeout_s):
    assert deadlines(stall_after_s=500.0).warning(timeout_s) == ""


def test_sections_of_another_name_are_learned_apart():
    assert deadlines(100, 100, 100).of_section("save", None)[0] == 300


def test_short_waits_do_not_lower_the_limit_of_a_collective_on_its_own():
    learned = Deadlines(Settings())
    for _ in range(10):
        learned.learn("collective", 0.001)

    assert learned.of_collective("barrier", None)[0] == 300


def test_ranks_get_half_a_minute_to_meet_however_short_the_limit():
    set_by_hand = deadlines(stall_after_s=5.0)

    assert set_by_hand.of_collective("init_process_group", None)[0] == 30
    assert set_by_hand.of_collective("barrier", None)[0] == 5


def test_collectives_have_a_limit_of_their_own_where_it_is_set():
    set_by_hand = deadlines(stall_after_s=5.0, collective_after_s=100.0)

    assert set_by_hand.of_collective("barrier", None)[0] == 100
