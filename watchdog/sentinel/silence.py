"""When ranks that all are silent are worth a word to the other nodes. Standard library only."""

from __future__ import annotations

ALL_SILENT = "--all-silent"
"""What a speaker is told when it is to leave word of its node."""

# Long imports and loads keep a watchdog thread from running as well.
_FIRST_AFTER_S = 10.0
_TIMES_LONGER = 4.0


class Silence:
    """Tells when it is time, and again when it goes on: each time after four times as long.

    What a rank does that cannot speak hardly changes, so a word about it does not get old soon;
    and there is no end to how long a rank may be stopped.
    """

    def __init__(self) -> None:
        self._told_up_to_s = _FIRST_AFTER_S
        self._num_ended = 0

    def is_to_be_told(self, silent_s: float, num_ended: int) -> bool:
        """Whether to tell now; who is told so has told it.

        Args:
            silent_s: How long no rank has shown a sign of life (s); infinite once all have ended.
            num_ended: Ranks that have ended without having said so.
        """
        if silent_s < _FIRST_AFTER_S:
            self._told_up_to_s, self._num_ended = _FIRST_AFTER_S, 0
            return False
        if silent_s <= self._told_up_to_s and num_ended == self._num_ended:
            return False
        self._told_up_to_s, self._num_ended = _TIMES_LONGER * silent_s, num_ended
        return True
