"""What is refused before Ray or torch is imported."""

import socket

import pytest

TARGET = ("--colocate", "--offload-train", "--disable-weights-backuper", "--lora-rank", "4")


def test_the_target_combination_is_refused_at_once(start_ray_run):
    run = start_ray_run(*TARGET, PYTHONPROFILEIMPORTTIME="1")

    status = run.finish(within_s=5)

    assert status == 1
    assert "AssertionError: --disable-weights-backuper is not supported with LoRA" in run.errors
    assert "| miles.launchers" in run.errors
    assert "| torch" not in run.errors
    assert "| ray" not in run.errors


@pytest.mark.ray
def test_an_address_where_nobody_listens_is_named(start_ray_run):
    pytest.importorskip("ray", exc_type=ImportError)
    with socket.socket() as unused:
        unused.bind(("127.0.0.1", 0))  # bound, and never listening
        address = f"127.0.0.1:{unused.getsockname()[1]}"
        run = start_ray_run("--ray-address", address)

        status = run.finish(within_s=30)

    assert status == 1
    assert f"no Ray cluster at {address}: " in run.errors
    assert "Traceback" not in run.errors
