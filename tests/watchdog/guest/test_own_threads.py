"""The watchdog's threads take none of the host's signals, and what they start may take all."""

import signal
import threading

from watchdog.capture import child
from watchdog.guest.worker import IncidentWorker
from watchdog.incident.on_stall import run_command


def on_own_thread(task):
    worker, found = IncidentWorker(), []
    worker.submit(lambda: found.append(task()))
    worker.stop(30)
    return found[0]


def test_a_signal_that_the_host_waits_for_goes_to_nobody_else():
    worker, is_there = IncidentWorker(), threading.Event()
    before = signal.pthread_sigmask(signal.SIG_BLOCK, ())
    try:
        worker.submit(is_there.set)
        assert is_there.wait(30)
        signal.pthread_sigmask(signal.SIG_BLOCK, {signal.SIGUSR1})
        blocked = on_own_thread(lambda: signal.pthread_sigmask(signal.SIG_BLOCK, ()))

        assert {signal.SIGUSR1, signal.SIGUSR2, signal.SIGTERM, signal.SIGCHLD} <= blocked
        assert signal.SIGSEGV not in blocked
    finally:
        signal.pthread_sigmask(signal.SIG_SETMASK, before)
        worker.stop(30)


def test_a_command_that_it_starts_blocks_no_signal(tmp_path):
    command = "grep SigBlk /proc/self/status; true"
    _, output = on_own_thread(
        lambda: run_command(command, incident=tmp_path, report=tmp_path / "report.md")
    )

    assert output.split() == [b"SigBlk:", b"0000000000000000"]


def test_a_program_that_it_asks_blocks_no_signal():
    command = ["grep", "SigBlk", "/proc/self/status"]

    said = on_own_thread(lambda: child.answer(command, 30))

    assert said.output.split() == ["SigBlk:", "0000000000000000"]
