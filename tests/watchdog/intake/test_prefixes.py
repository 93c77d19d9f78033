from __future__ import annotations

import pytest

from watchdog.intake.prefixes import PrefixReader, who_by_process_name
from watchdog.intake.times import Calendar


def read(text: str, slurm: bool = False):
    return PrefixReader(slurm).read(text)


@pytest.mark.parametrize(
    ("text", "message", "who"),
    [
        ("(Pusher pid=12, ip=10.0.0.1) hello", "hello", {"pid": 12, "host": "10.0.0.1"}),
        ("(raylet) hello", "hello", {"actor": "raylet"}),
        ("(EngineCore_DP1 pid=8) INFO 02-03 10:11:12 [core.py:9] up", "up",
         {"pid": 8, "replica": 1, "role": "engine"}),
        ("(Worker_DP0_TP3 pid=9) up", "up", {"replica": 0, "worker": 3, "role": "engine_worker"}),
        ("[default5]:hello", "hello", {"local_rank": 5}),
        ("[Trainer][RANK 6][2026-03-02 08:14:49][INFO] hello", "hello", {"rank": 6}),
        ("[global_rank=6] hello", "hello", {"rank": 6}),
        ("[1,6]<stderr>:hello", "hello", {"rank": 6}),
        ("Rank 6: hello", "hello", {"rank": 6}),
        ("n7:803:811 [0] misc/shmutils.cc:87 NCCL WARN x", "NCCL WARN x", {"pid": 803}),
        ("[rank17]: hello", "hello", {"rank": 17}),
        ("[default1]:[rank9]:[W806 07:44:33.519207741 ProcessGroupGloo.cpp:760] Warning: x",
         "Warning: x", {"rank": 9, "local_rank": 1}),
        ("[2026-03-02 08:14:49 DP1 TP2] ready", "ready", {"worker": 2, "replica": 1}),
        ("[2026-03-02 08:14:49.120 actor_cell0_rank6] actor.py:31 - Timer x start",
         "Timer x start", {"rank": 6, "role": "trainer"}),
        ("node7:80310:80311 [0] NCCL INFO x", "NCCL INFO x", {"pid": 80310, "host": "node7"}),
        ("2026-03-24 09:13:55.020 | INFO     | a.b.c:build:611 - go", "go", {}),
        ("20:17:11   DEBUG waiting", "waiting", {}),
        ("2026-01-02T03:04:05.123456789Z stdout F hello", "hello", {}),
        ("08/14/2026 02:11:40 - INFO - trl.trainer - sync", "sync", {}),
        ("    indented (a.py:3)", "    indented (a.py:3)", {}),
        ("(not a prefix) text", "(not a prefix) text", {}),
    ],
)  # fmt: skip
def test_prefixes_are_taken_off_and_say_who_wrote(text, message, who):
    line = read(text)

    assert line.text == message
    for name, value in who.items():
        assert getattr(line.who, name) == value, name


def test_srun_labels_count_only_where_the_file_has_them():
    assert read("3: hello", slurm=True).who.local_rank == 3
    assert read("3: hello").text == "3: hello"


def test_lines_that_ray_folded_are_counted():
    line = read("(A pid=1) x [repeated 31x across cluster] (Ray deduplicates logs by default.)")

    assert (line.text, line.repeated) == ("x", 31)


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        ("[2026-03-02 08:14:49.5] x", "2026-03-02T08:14:49.5"),
        ("20260408-11:02:11.410 x", "2026-04-08T11:02:11.41"),
        ("08/14/2026 02:11:40 - INFO - x", "2026-08-14T02:11:40"),
        ("[E0412 20:30:49.118204377 a.cpp:63] x", "2026-04-12T20:30:49.118204377"),
        ("INFO 03-20 11:10:02 [core.py:9] x", "2026-03-20T11:10:02"),
    ],
)
def test_times_of_all_formats_are_the_same_moment(text, expected):
    import datetime

    calendar = Calendar([read("[2026-09-09 00:00:00] x").moment])

    found = calendar.epoch_s(read(text).moment)

    seconds, _, fraction = expected.partition(".")
    moment = datetime.datetime.fromisoformat(seconds + "+00:00").timestamp()
    assert found == pytest.approx(moment + float(f"0.{fraction or 0}"), abs=1e-6)


def test_a_year_that_no_source_has_is_not_in_the_future():
    import datetime

    today = datetime.date(2026, 2, 1)
    moment = read("INFO 12-31 23:00:00 [a.py:1] x").moment

    seconds = Calendar([moment], today).epoch_s(moment)

    assert datetime.datetime.fromtimestamp(seconds, datetime.timezone.utc).year == 2025


@pytest.mark.parametrize(
    ("title", "who"),
    [
        ("sglang::scheduler_DP1_TP3", {"role": "engine_worker", "worker": 3, "replica": 1}),
        ("sglang::scheduler", {"role": "engine_worker", "worker": 0}),
        ("VLLM::EngineCore_DP2", {"role": "engine", "replica": 2}),
        ("ray::lm_policy-5:DTensorPolicyWorker.train", {"role": "trainer", "rank": 5}),
        ("ray::MegatronTrainRayActor.sleep", {"role": "trainer"}),
        ("ray::SGLangEngine.pause", {"role": "engine"}),
        ("/usr/bin/torchrun --nproc 8 x.py", {"role": "launcher"}),
        ("python3 serve_me.py --role trainer", {"role": "trainer"}),
        ("bash", {"role": None}),
    ],
)
def test_process_titles_tell_the_part_in_the_job(title, who):
    found = who_by_process_name(title)

    for name, value in who.items():
        assert getattr(found, name) == value, name


def test_labels_of_srun_are_padded_to_the_width_of_the_largest():
    assert read(" 9: hello", slurm=True).who.local_rank == 9
    assert read(" 9: hello").text == " 9: hello"
