"""What makes a read of paused memory wait, and which way this machine allows."""

from __future__ import annotations

import logging
import os
from typing import ClassVar, Literal, Protocol

from miles.utils.pausable_memory.backup import Backup
from miles.utils.pausable_memory.page_protection import PageProtection
from miles.utils.pausable_memory.pages import Pages
from miles.utils.pausable_memory.userfaultfd import UserFaultFd

logger = logging.getLogger(__name__)

MechanismName = Literal["auto", "userfaultfd", "mprotect"]


class PausingRefusedError(RuntimeError):
    """This machine lets no read of released memory wait, so nothing can be paused."""


class Mechanism(Protocol):
    """One way to release pages so that a reader waits for them without an error."""

    name: ClassVar[str]

    def block(self, pages: Pages) -> None:
        """Release the pages; from now on whoever reads or writes them waits."""

    def unblock(self, pages: Pages, backup: Backup | None) -> None:
        """Give the pages back, filled from the backup or with zeros.

        A reader sees the restored bytes or goes on waiting, never anything between.
        """

    def wake_readers(self) -> None:
        """Let those go on who waited for pages that have been unblocked since."""

    def forget(self, address: int) -> None:
        """Note that blocked pages are about to be unmapped. Safe in a finalizer."""


def choose_mechanism(name: MechanismName) -> Mechanism:
    """Set up the mechanism of that name, or with `auto` the first that is allowed.

    Raises:
        PausingRefusedError: The named mechanism is refused, or with `auto` both are; the
            message names each, the system's reason, and what to change.
    """
    refusals = []
    for mechanism in (UserFaultFd, PageProtection):
        if name not in ("auto", mechanism.name):
            continue
        try:
            chosen: Mechanism = mechanism()
        except OSError as error:
            refusals.append(f"{mechanism.name}: {os.strerror(error.errno or 0)}")
            continue
        if refusals:
            logger.warning(
                "pausable memory uses %s, which hides genuine segmentation faults while "
                "anything is paused, because the first choice is refused (%s)",
                chosen.name,
                "; ".join(refusals),
            )
        return chosen
    raise PausingRefusedError(
        f"memory cannot be paused on this machine ({'; '.join(refusals)}). Needed is Linux 5.11 "
        "or later with the system call userfaultfd, or mprotect with PROT_NONE; in a container, "
        "allow one of them (Docker: --security-opt seccomp=<profile>). Without offloading "
        "(--no-offload-train) nothing is paused and none is needed."
    )
