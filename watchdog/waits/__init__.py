"""What a process is doing, and for whom it waits.

`wait_of` reads everything that is known of one process: status, kernel wait channels, black box,
stacks of all threads. The tables of frame patterns lie beside it, one module a kind.
"""

from __future__ import annotations

from watchdog.waits.event_loop import blocks_event_loop
from watchdog.waits.process import Wait, wait_of
from watchdog.waits.stack import StackWait, stack_wait, thread_waits

__all__ = ["StackWait", "Wait", "blocks_event_loop", "stack_wait", "thread_waits", "wait_of"]
