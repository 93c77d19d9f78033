from __future__ import annotations

import json

import pytest

from watchdog.evidence import Evidence, Flag, Process
from watchdog.intake.shell_text import read_script
from watchdog.serialization import evidence_to_json


def values(evidence: Evidence) -> dict[str, object]:
    return {flag.name: flag.value for flag in evidence.flags}


SCRIPT = """\
#!/bin/bash
# --not-a-flag
export NCCL_DEBUG=INFO HF_TOKEN=hf_abcdefghijklmnop
NODES=${NODES:-2}
COMMON="--lora-rank 16 --colocate"
COMMON="$COMMON --lr 1e-5"   # trailing
PERF=(
   --tensor-model-parallel-size 4
   # --commented-out
   --names "a b"
)
if [ -d x ]; then echo hi; fi
ray job submit --address="http://127.0.0.1:8265" \\
  --runtime-env-json='{"env_vars": {"GLOO_SOCKET_IFNAME": "eth0",
      "WANDB_API_KEY": "1234567890"}}' \\
  -- python3 train_async.py $COMMON ${PERF[@]} \\
  --actor-num-nodes ${NODES} --temperature -1 2>&1 | tee run.log && echo done
"""


def test_a_launch_script_gives_the_flags_of_what_it_starts(read_files):
    evidence = read_files({"go": SCRIPT})

    assert values(evidence) == {
        "lora_rank": 16,
        "colocate": True,
        "lr": 1e-5,
        "tensor_model_parallel_size": 4,
        "names": "a b",
        "actor_num_nodes": 2,
        "temperature": -1,
    }


def test_a_launch_script_gives_variables_with_secrets_masked(read_files):
    environment = read_files({"go": SCRIPT}).environment

    assert environment["NCCL_DEBUG"] == "INFO"
    assert environment["GLOO_SOCKET_IFNAME"] == "eth0"
    assert "hf_" not in environment["HF_TOKEN"]
    assert environment["WANDB_API_KEY"] != "1234567890"


def test_a_flag_says_where_it_was_read(read_files):
    flag = next(f for f in read_files({"go": SCRIPT}).flags if f.name == "lora_rank")

    assert flag.origin == "go:13 (train_async.py)"


def test_hydra_overrides_are_flags(read_files):
    text = (
        "python3 -m verl.trainer.main_ppo a.b.name=sglang +a.c=null a.flag=True \\\n"
        " trainer.nnodes=2 trainer.n_gpus_per_node=4"
    )

    evidence = read_files({"cmd.txt": text})

    assert values(evidence) == {
        "a.b.name": "sglang",
        "a.c": None,
        "a.flag": True,
        "trainer.nnodes": 2,
        "trainer.n_gpus_per_node": 4,
    }
    assert evidence.world_size == 8


def test_a_script_is_never_run(tmp_path, read_files):
    made = tmp_path / "made"

    read_files({"evil.sh": f"#!/bin/sh\ntouch {made}; python3 t.py --x $(touch {made}) --y `id`\n"})

    assert not made.exists()


def test_single_quotes_keep_a_dollar_and_double_quotes_do_not():
    script = read_script("A=5\npython x.py --p '$A' --q \"$A\" --r \\$A")

    assert script.commands[0].argv == ["python", "x.py", "--p", "$A", "--q", "5", "--r", "$A"]


def test_variables_that_name_each_other_end():
    script = read_script("A='$B'\nB='$A'\npython x.py --p $A")

    assert script.commands[0].argv[:3] == ["python", "x.py", "--p"]


@pytest.mark.parametrize(
    "text",
    [
        "  lora_rank ......... 8\n  colocate .......... True\n  load .............. None\n",
        "rank0: Namespace(lora_rank=8, colocate=True, load=None, a=1, b=2)\n",
        "lora_rank=8 colocate=True load=None\nnum_rollout=3 other_thing=4\n",
    ],
)
def test_resolved_arguments_come_in_three_forms(read_files, text):
    found = values(read_files({"args.log": text}))

    assert (found["lora_rank"], found["colocate"], found["load"]) == (8, True, None)


def test_yaml_is_flattened(read_files):
    text = (
        "actor:\n  strategy: fsdp2\n  sizes: [1, 2]\nrollout:\n  tp: 2 # comment\n  api_key: abc\n"
    )

    found = values(read_files({"c.txt": text}))

    assert found["actor.strategy"] == "fsdp2"
    assert found["actor.sizes"] == "1,2"
    assert found["rollout.tp"] == 2
    assert found["rollout.api_key"] != "abc"


def test_a_yaml_of_aliases_within_aliases_costs_nothing(read_files):
    lines = ["a0: &a0 [x, x]"]
    lines += [f"a{n}: &a{n} [{', '.join([f'*a{n - 1}'] * 9)}]" for n in range(1, 40)]

    evidence = read_files({"bomb.yaml": "\n".join(lines), "go": SCRIPT})

    assert "lora_rank" in values(evidence)


def test_json_arguments_are_flags_and_other_json_is_not(read_files):
    evidence = read_files(
        {
            "args.json": json.dumps({"lora_rank": 4, "hf_checkpoint": "/m", "rollout": {"n": 8}}),
            "answer.json": json.dumps({"state": "hung", "class": "other", "why": "colocate"}),
        }
    )

    assert values(evidence) == {"lora_rank": 4, "hf_checkpoint": "/m", "rollout.n": 8}


def test_our_own_evidence_is_merged_by_process(read_files):
    one = Evidence("watchdog", (Process("rank 0", "trainer", 0, pid=1),), world_size=2)
    two = Evidence("watchdog", (Process("rank 1", "trainer", 1, pid=2),))
    both = Evidence(
        "watchdog", (Process("rank 0", "trainer", 0, pid=1, host="n1"),), flags=(Flag("x", 1),)
    )

    evidence = read_files(
        {
            "node-0/evidence.json": evidence_to_json(both),
            "node-1/evidence.json": evidence_to_json(two),
            "of-rank-0.json": evidence_to_json(one),
        }
    )

    assert evidence.origin == "watchdog"
    assert [(p.key, p.pid, p.host) for p in evidence.processes] == [
        ("rank 0", 1, "n1"),
        ("rank 1", 2, ""),
    ]
    assert (evidence.world_size, len(evidence.flags)) == (2, 1)


def test_evidence_of_another_version_costs_a_note_only(read_files):
    evidence = read_files({"e.json": '{"schema_version": 99, "origin": "files"}', "go": SCRIPT})

    assert evidence.gaps[0].what == "e.json"
    assert "99" in evidence.gaps[0].why


def test_a_short_log_that_begins_with_its_traced_command_is_a_log(read_files):
    text = (
        "+ srun -l torchrun --nnodes=2 --nproc_per_node=8 --master_addr=q1 train.py\n"
        "0: [rank0]: Traceback (most recent call last):\n"
        '0: [rank0]:   File "/job/a.py", line 3, in connect\n'
        "0: [rank0]: ValueError: bad port\n"
    )

    kinds = [event.kind for event in read_files({"job.out": text}).log_events]

    assert "traceback" in kinds
