"""What goes wrong with the tool itself: one tree, each error with advice and an exit status."""

from __future__ import annotations


class WatchdogError(Exception):
    """Base of all errors that the command line shows without a traceback.

    Attributes:
        help_text: What the reader can do next, one or two sentences.
        exit_code: Status the command line ends with.
    """

    help_text: str = ""
    exit_code: int = 1


class UnusableInputError(WatchdogError):
    """A path, file or line that was given cannot be used. The message names it and says why."""

    help_text = "Pass files or folders of the incident: py-spy dumps, logs, launch scripts."
    exit_code = 2


class UnreadableEvidenceError(WatchdogError):
    """The file is not evidence, or another version wrote it."""

    help_text = "Pass an incident's folder, or the evidence.json in it."
    exit_code = 2
