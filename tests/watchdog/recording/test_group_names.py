import sys

import pytest

from watchdog.blackbox.reading import GroupReading, collectives
from watchdog.blackbox.writing import BlackBox
from watchdog.recording.group_names import GroupNames


class Group:
    def __init__(self, description="undefined"):
        self.group_desc = description


class Owner:
    pass


names = GroupNames()


def make(description="undefined"):
    group = Group(description)
    names.made(group, sys._getframe(1))
    return group


def new_group():
    pg = make()
    return pg


_sync_group = make()


def test_a_group_is_called_as_its_variable():
    gloo_group = make()

    assert names.of(gloo_group) == "gloo_group"
    assert names.of(_sync_group) == "sync_group"


def test_a_group_is_called_as_the_attribute_that_keeps_it():
    owner = Owner()
    owner._ipc_gather_group = make()

    assert names.of(owner._ipc_gather_group) == "ipc_gather_group"


def test_a_group_in_a_variable_that_says_nothing_is_called_by_who_made_it():
    group = make()

    assert names.of(group) == f"group made in {sys._getframe().f_code.co_name}"
    assert names.of([make()][0]) == names.of(group)


def test_a_frameworks_own_way_to_make_groups_is_looked_through():
    tensor_parallel = new_group()

    assert names.of(tensor_parallel) == "tensor_parallel"


def test_a_description_given_to_torch_comes_first():
    gloo_group = make("weights to engines")

    assert names.of(gloo_group) == "weights to engines"


def test_what_a_rank_gets_that_is_no_member_is_no_group():
    names.made(-100, sys._getframe())

    assert names.of(-100) == ""


def test_names_of_dead_groups_do_not_pile_up():
    many = GroupNames()
    for _ in range(10_000):
        many.made(Group(), sys._getframe())

    assert len(many._made) <= 4096


@pytest.mark.parametrize(
    ("ranks", "label"),
    [
        ((0, 1, 2, 3), "gloo_group of ranks 0-3"),
        ((2,), "gloo_group of rank 2"),
        (tuple(range(0, 64, 8)), "gloo_group of ranks 0-56/8"),
        (tuple(n * n for n in range(30)), "gloo_group of ranks 0 and 29 more"),
    ],
)
def test_the_label_says_which_ranks(ranks, label):
    assert GroupReading("7", "gloo_group", ranks, len(ranks), 0, 0.0).label == label


def test_the_same_name_of_other_ranks_is_another_group():
    box = BlackBox.anonymous({})
    for slot, ranks in enumerate([(0, 1), (2, 3)]):
        box.group(slot, box.text(str(slot)), box.text("tensor_parallel"), ranks, 0.0)
        box.event(3, box.text("barrier"), 1.0 + slot, group=slot, sequence=1)

    first, second = collectives(box.reading(), 2.0)

    assert first.group != second.group
