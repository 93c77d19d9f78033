"""Event loops that are kept from running by a call that waits."""

from __future__ import annotations

from watchdog.evidence import Process


def blocks_event_loop(process: Process) -> bool:
    """Whether a thread waits in `ray.get` inside of a turn of its event loop, in the last sample.

    Until it returns, no other call of that actor runs.
    """
    return any(
        _waits_in_turn([(f.function, f.file) for f in thread.frames])
        for sample in process.stacks[-1:]
        for thread in sample.threads
    )


def _waits_in_turn(calls: list[tuple[str, str]]) -> bool:
    call = next(
        (
            index
            for index, (function, file) in enumerate(calls)
            if function == "get" and file.endswith("ray/_private/worker.py")
        ),
        None,
    )
    return call is not None and any(function == "_run_once" for function, _ in calls[call:])
