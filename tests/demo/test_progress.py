from watchdog.demo.progress import progress

ENGINE = "python -m miles.rollout.engine_server --engine-index 0"
RANK = "python -u -m miles.train_rank --colocate"


def test_each_step_of_the_start_is_told_apart():
    steps = [
        progress(["python -m miles.train", ENGINE, ENGINE], []),
        progress(["python -m miles.train", ENGINE, ENGINE, RANK, RANK], []),
        progress([ENGINE, RANK], ["all ranks are up"]),
        progress([RANK], ["all ranks are up", "[miles-watchdog] ending rank 0 with status 86"]),
    ]

    assert steps[0].startswith("2 engines started")
    assert steps[1].startswith("2 ranks started")
    assert len(set(steps)) == 4
