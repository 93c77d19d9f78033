"""What becomes of a run when a part of it fails."""

import signal

import pytest

ONE_RANK = ("--actor-num-gpus-per-node", "1", "--colocate", "--num-rollout", "100000")
TWO_RANKS = ("--actor-num-gpus-per-node", "2", "--rollout-num-gpus-per-engine", "2")


@pytest.mark.slow
def test_a_dead_engine_ends_the_run_by_name(start_run):
    run = start_run(*ONE_RANK)
    run.wait_for_line("rollout 1 ")
    (engine,) = run.engines()

    engine.kill()

    assert run.finish() == 1
    assert "EngineError: engine 0 at http://127.0.0.1:" in run.errors
    assert "engine 0 ended with status -9" in run.errors
    assert run.wait_until_all_ended() == []


@pytest.mark.slow
def test_a_killed_rank_ends_the_run_by_name(start_run):
    run = start_run(*TWO_RANKS, *ONE_RANK[2:])
    run.wait_for_line("rollout 1 ")

    run.ranks()[1].kill()

    assert run.finish() == 1
    assert "miles.train: rank 1 failed: Signal 9 (SIGKILL)" in run.errors
    assert run.wait_until_all_ended() == []


@pytest.mark.slow
def test_ctrl_c_ends_a_run_quietly_and_leaves_no_process(start_run):
    run = start_run(*ONE_RANK)
    run.wait_for_line("rollout 1 ")

    run.process.send_signal(signal.SIGINT)

    assert run.finish() == 128 + signal.SIGINT
    assert list(run.scratch.iterdir()) == []
    assert run.wait_until_all_ended() == []
    assert "Traceback" not in run.errors


@pytest.mark.slow
def test_an_engine_that_answers_500_ends_the_run_with_its_words(start_run, start_engine):
    engine = start_engine()
    load = engine.endpoints["/update_weights_from_tensor"]

    def fail_at_version_3(query, body):
        if query["weight_version"] == "3":
            raise RuntimeError("out of memory")
        return load(query, body)

    engine.endpoints["/update_weights_from_tensor"] = fail_at_version_3
    run = start_run(*ONE_RANK, "--rollout-external-engine-addrs", engine.address)

    assert run.finish() == 1
    assert [step["rollout"] for step in run.metrics()] == [0]
    assert (
        "answered /update_weights_from_tensor with 500: RuntimeError: out of memory" in run.errors
    )
    assert run.wait_until_all_ended() == []


@pytest.mark.slow
def test_weights_that_change_on_the_way_end_the_run_with_the_tensors_name(start_run, start_engine):
    engine = start_engine()
    load = engine.endpoints["/update_weights_from_tensor"]

    def damage(query, body):
        damaged = bytearray(body)
        damaged[-1] ^= 1
        return load(query, bytes(damaged))

    engine.endpoints["/update_weights_from_tensor"] = damage
    run = start_run(*ONE_RANK, "--rollout-external-engine-addrs", engine.address)

    assert run.finish() == 1
    assert "with 400: ChecksumMismatchError: output_layer.weight arrived with" in run.errors
    assert run.wait_until_all_ended() == []
