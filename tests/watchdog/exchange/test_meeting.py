from __future__ import annotations

import random
from dataclasses import replace

import pytest
from boards import MemoryBoard

from watchdog.evidence import (
    Evidence,
    Frame,
    Position,
    Process,
    StackSample,
    Stall,
    ThreadStack,
)
from watchdog.exchange import roster
from watchdog.exchange.board import Together
from watchdog.exchange.meeting import Meeting, Outcome, answering_key

WORLD_SIZE = 8
RANKS_A_NODE = 2


class Clock:
    def __init__(self) -> None:
        self.now = 100.0

    def now_s(self) -> float:
        return self.now


def trainer(rank: int, function: str = "barrier") -> Process:
    thread = ThreadStack("MainThread", (Frame(function, "distributed_c10d.py", 10),))
    return Process(
        f"rank {rank}",
        "trainer",
        rank=rank,
        pid=1000 + rank,
        host=f"host-{rank // RANKS_A_NODE}",
        status="running",
        stacks=(StackSample((thread,), "py-spy"),),
        position=Position(section="weight_sync", section_index=3, phase="barrier:entry"),
    )


def node_evidence(node: int, ranks_a_node: int = RANKS_A_NODE) -> Evidence:
    ranks = range(node, node + ranks_a_node)
    return Evidence(
        "watchdog",
        tuple(trainer(rank) for rank in ranks),
        world_size=WORLD_SIZE,
        stall=Stall("weight_sync", 5.0, 5.0, noticed_by=tuple(ranks)),
    )


def meeting_of(node: int, board, clock: Clock) -> Meeting:
    return Meeting(board, "weight_sync-0003", node, node_evidence(node), 3.0, clock.now_s)


def enroll_all(board) -> None:
    for node in range(0, WORLD_SIZE, RANKS_A_NODE):
        roster.enroll(board, node, range(node, node + RANKS_A_NODE))


def run(meetings: dict[int, Meeting], clock: Clock, dead=frozenset(), s=60.0) -> dict[int, Outcome]:
    outcomes: dict[int, Outcome] = {}
    end = clock.now + s
    while clock.now < end and len(outcomes) < len(meetings) - len(dead):
        for node, meeting in meetings.items():
            if node not in outcomes and node not in dead and (outcome := meeting.step()):
                outcomes[node] = outcome
        clock.now += 0.1
    return outcomes


def keys(evidence: Evidence) -> list[str]:
    return [process.key for process in evidence.processes]


ALL_RANKS = [f"rank {rank}" for rank in range(WORLD_SIZE)]


def test_all_nodes_end_with_the_evidence_of_all_ranks():
    board, clock = MemoryBoard(), Clock()
    enroll_all(board)
    meetings = {node: meeting_of(node, board, clock) for node in (6, 2, 4, 0)}

    outcomes = run(meetings, clock)

    assert {tuple(keys(outcome.evidence)) for outcome in outcomes.values()} == {tuple(ALL_RANKS)}
    assert [node for node, outcome in outcomes.items() if outcome.leads] == [0]
    assert outcomes[6].evidence.processes[0].stacks == trainer(0).stacks


def test_the_node_of_rank_zero_leads_though_it_comes_a_little_later():
    board, clock = MemoryBoard(), Clock()
    enroll_all(board)
    late = {node: meeting_of(node, board, clock) for node in (2, 4, 6)}
    assert all(meeting.step() is None for meeting in late.values())

    clock.now += 0.3
    outcomes = run({0: meeting_of(0, board, clock), **late}, clock)

    assert [node for node, outcome in outcomes.items() if outcome.leads] == [0]


def test_a_node_that_does_not_answer_is_named_with_what_it_last_said():
    board, clock = MemoryBoard(), Clock()
    enroll_all(board)
    place = Position(section="weight_sync", phase="read_weights", phase_age_s=1.0)
    state = roster.RankState(4, 1004, "host-2", place, said_at_s=0.0)
    roster.write_state(board, 4, [state])
    meetings = {node: meeting_of(node, board, clock) for node in (0, 2, 6)}

    outcomes = run(meetings, clock)

    silent = {one.rank: one for one in outcomes[0].evidence.processes}[4]
    assert keys(outcomes[0].evidence) == ALL_RANKS
    assert silent.host == "host-2"
    assert silent.pid == 1004
    assert silent.position is not None
    assert silent.position.phase == "read_weights"
    assert "no answer from host host-2" in silent.status_detail
    assert "did not answer within 3 s" in silent.gaps[0].why


def test_a_busy_node_that_said_it_answers_is_waited_for_longer():
    board, clock = MemoryBoard(), Clock()
    enroll_all(board)
    meetings = {node: meeting_of(node, board, clock) for node in (0, 2, 6)}
    board.put(answering_key("weight_sync-0003", 4), b"")

    assert run(meetings, clock, s=6.0) == {}
    outcomes = run({**meetings, 4: meeting_of(4, board, clock)}, clock)

    assert outcomes[0].evidence.processes[4].stacks == trainer(4).stacks


def test_a_node_that_said_it_answers_and_does_not_is_not_waited_for_for_ever():
    board, clock = MemoryBoard(), Clock()
    enroll_all(board)
    board.put(answering_key("weight_sync-0003", 4), b"")

    outcomes = run({node: meeting_of(node, board, clock) for node in (0, 2, 6)}, clock, s=12.0)

    silent = {one.rank: one for one in outcomes[0].evidence.processes}[4]
    assert "did not answer within 10 s" in silent.gaps[0].why


def test_a_rank_that_never_said_where_it_lives_is_in_the_evidence():
    board, clock = MemoryBoard(), Clock()

    outcomes = run({0: meeting_of(0, board, clock)}, clock)

    assert keys(outcomes[0].evidence) == ALL_RANKS
    assert "never said where it was" in outcomes[0].evidence.processes[7].status_detail


def test_another_node_takes_over_when_the_leader_dies():
    board, clock = MemoryBoard(), Clock()
    enroll_all(board)
    meetings = {node: meeting_of(node, board, clock) for node in (0, 2, 4)}
    for meeting in meetings.values():
        assert meeting.step() is None

    outcomes = run(meetings, clock, dead={0})

    assert sum(outcome.leads for outcome in outcomes.values()) == 1
    assert keys(outcomes[2].evidence) == ALL_RANKS
    # It died after it had posted what it knew.
    assert outcomes[2].evidence.processes[0].stacks == trainer(0).stacks


def test_a_board_that_is_lost_leaves_each_node_with_its_own():
    board, clock = MemoryBoard(), Clock()
    meetings = {node: meeting_of(node, board, clock) for node in (0, 2)}
    for meeting in meetings.values():
        meeting.step()

    board.is_gone = True
    outcomes = run(meetings, clock)

    assert all(outcome.leads for outcome in outcomes.values())
    assert keys(outcomes[2].evidence) == ALL_RANKS
    assert outcomes[2].evidence.processes[2].stacks == trainer(2).stacks
    assert "could not meet" in outcomes[2].evidence.processes[0].gaps[0].why


def test_a_stack_that_many_ranks_share_travels_once():
    board, clock = MemoryBoard(), Clock()
    enroll_all(board)
    meetings = {node: meeting_of(node, board, clock) for node in (0, 2, 4, 6)}
    odd = replace(node_evidence(6), processes=(trainer(6), trainer(7, "read_weights")))
    meetings[6].own = odd

    outcomes = run(meetings, clock)

    assert len([key for key in board.notes if key.startswith("stacks/")]) == 2
    last = outcomes[0].evidence.processes[7]
    assert last.stacks[0].threads[0].frames[0].function == "read_weights"


def test_engines_of_two_nodes_keep_their_own_keys():
    board, clock = MemoryBoard(), Clock()
    enroll_all(board)
    meetings = {node: meeting_of(node, board, clock) for node in (0, 2, 4, 6)}
    for node in (0, 2):
        engine = Process("engine 0", "engine", engine=0, pid=7, host=f"host-{node // 2}")
        own = meetings[node].own
        meetings[node].own = replace(own, processes=(*own.processes, engine))

    outcomes = run(meetings, clock)

    assert keys(outcomes[0].evidence)[WORLD_SIZE:] == ["engine 0", "engine 0 on host-1"]


def fault_schedule(seed: int) -> None:
    """Nodes and boards die at random steps; whoever lives ends with all ranks named."""
    dice = random.Random(seed)
    clock = Clock()
    notes: dict[str, bytes] = {}
    stores = {node: MemoryBoard(notes, "store") for node in range(0, WORLD_SIZE, RANKS_A_NODE)}
    has_folder = dice.random() < 0.5
    shared: dict[str, bytes] = {}
    meetings = {}
    for node, store in stores.items():
        folder = MemoryBoard(shared if has_folder else {}, "folder")
        board = Together([store, folder])
        if dice.random() < 0.8:
            roster.enroll(board, node, range(node, node + RANKS_A_NODE))
        meetings[node] = meeting_of(node, board, clock)
    outcomes: dict[int, Outcome] = {}
    dead: set[int] = set()
    for _ in range(900):
        for node in dice.sample(sorted(meetings), len(meetings)):
            if node in dead or node in outcomes or dice.random() < 0.3:
                continue
            if (outcome := meetings[node].step()) is not None:
                outcomes[node] = outcome
        if dice.random() < 0.02 and len(dead) < len(meetings) - 1:
            dead.add(dice.choice(sorted(meetings)))
        if dice.random() < 0.02:
            stores[dice.choice(sorted(stores))].is_gone = True
        if dice.random() < 0.005:
            for store in stores.values():
                store.is_gone = True
        clock.now += dice.choice((0.05, 0.1, 1.0))
    alive = set(meetings) - dead
    assert alive <= set(outcomes), f"seed {seed}: a node was left without an outcome"
    for node, outcome in outcomes.items():
        assert keys(outcome.evidence) == ALL_RANKS, f"seed {seed}, node {node}"
    assert any(outcome.leads for outcome in outcomes.values()) or dead


@pytest.mark.parametrize("seed", range(300))
def test_no_fault_leaves_a_node_without_an_outcome(seed):
    fault_schedule(seed)


@pytest.mark.exhaustive
def test_no_fault_leaves_a_node_without_an_outcome_many_times():
    for seed in range(1000, 6000):
        fault_schedule(seed)
