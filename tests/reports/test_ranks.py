from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from watchdog.reports.ranks import folded, ranks_label


@pytest.mark.parametrize(
    ("ranks", "text"),
    [
        ([], ""),
        ([3], "3"),
        ([0, 1], "0-1"),
        ([0, 1, 2, 4, 5, 6, 7], "0-2, 4-7"),
        ([7, 1, 0, 1], "0-1, 7"),
        (range(512), "0-511"),
    ],
)
def test_neighbours_are_told_as_a_range(ranks, text):
    assert folded(ranks) == text


@given(st.sets(st.integers(min_value=0, max_value=300)))
def test_folding_loses_no_rank_and_adds_none(ranks):
    unfolded = set()
    for part in filter(None, folded(ranks).split(",")):
        first, _, last = part.partition("-")
        unfolded |= set(range(int(first), int(last or first) + 1))

    assert unfolded == ranks


def test_one_rank_is_singular_and_several_are_plural():
    assert (ranks_label([]), ranks_label([3]), ranks_label([3, 4])) == ("", "rank 3", "ranks 3-4")
