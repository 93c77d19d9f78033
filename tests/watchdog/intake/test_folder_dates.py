from __future__ import annotations

_DUMP = 'Process 71: python train.py\n\nThread 71 (idle): "MainThread"\n    {call} (a.py:3)\n'


def test_dumps_beside_a_file_that_holds_a_time_were_taken_then(read_files):
    evidence = read_files(
        {
            "first/when.txt": "2026-05-01 10:00:00\n",
            "first/rank0.txt": _DUMP.format(call="forward"),
            "second/when.txt": "Fri May  1 10:02:30 UTC 2026\n",
            "second/rank0.txt": _DUMP.format(call="backward"),
        }
    )

    (found,) = evidence.processes
    before, after = (sample.taken_at_s for sample in found.stacks)
    assert after - before == 150


def test_two_dumps_of_one_process_in_one_folder_do_not_share_its_time(read_files):
    evidence = read_files(
        {
            "when.txt": "2026-05-01 10:00:00\n",
            "rank0_t1.txt": _DUMP.format(call="forward"),
            "rank0_t2.txt": _DUMP.format(call="backward"),
        }
    )

    (found,) = evidence.processes
    assert [sample.taken_at_s for sample in found.stacks] == [None, None]
