"""Who is told to end is told by whom, and says so."""

from __future__ import annotations

import json
import os
from dataclasses import replace

import pytest

from watchdog.incident.abort import ending_words
from watchdog.process_identity import process_identity
from watchdog.sentinel.abort_order import ORDER, order, ordered_by


def test_an_order_names_whose_watchdog_gave_it_and_for_what(tmp_path):
    order(tmp_path, [(7, 8)], "rank 3 (weight_sync 12 is stalled)")
    told = json.loads((tmp_path / ORDER).read_text())
    assert ordered_by(tmp_path) is None  # its own

    (tmp_path / ORDER).write_text(json.dumps({**told, "by": os.getpid() + 1}))

    assert ordered_by(tmp_path) == "rank 3 (weight_sync 12 is stalled)"


@pytest.mark.parametrize(
    ("text", "by"),
    [('{"by": 1, "status": 86}', "pid 1"), ("[]", None), ("not json", None), (None, None)],
)
def test_an_order_of_another_version_still_counts_and_rubbish_does_not(tmp_path, text, by):
    if text is not None:
        (tmp_path / ORDER).write_text(text)

    assert ordered_by(tmp_path) == by


def test_the_last_words_of_a_rank_name_it_its_status_and_the_reason():
    identity = process_identity({"RANK": "5"})

    assert ending_words(identity, "ordered by the watchdog of rank 3") == (
        "ending rank 5 with status 86: ordered by the watchdog of rank 3"
    )
    nobody = ending_words(replace(identity, rank=None, host="node-a", pid=7), "why")
    assert nobody == "ending node-a:7 with status 86: why"
