"""A click group that imports a subcommand when it is called, and shows errors with advice."""

from __future__ import annotations

import contextlib
import errno
import importlib
import os
import sys
from collections.abc import Iterator, Mapping
from typing import IO, Any

import click

from watchdog.errors import WatchdogError
from watchdog.exit_status import BROKEN_PIPE, FAULT, UNUSABLE

_NO_ROOM = (errno.ENOSPC, errno.EDQUOT, errno.EFBIG)


class LazyGroup(click.Group):
    """Subcommands by name; the module of the same name holds one as `command`."""

    def __init__(
        self, *args: Any, commands_help: Mapping[str, str], package: str, **kwargs: Any
    ) -> None:
        super().__init__(*args, **kwargs)
        self._commands_help = commands_help
        self._package = package

    def list_commands(self, ctx: click.Context) -> list[str]:
        """Names in alphabetical order."""
        return sorted(self._commands_help)

    def get_command(self, ctx: click.Context, cmd_name: str) -> click.Command | None:
        """The imported command, `None` where the table has no such name."""
        if cmd_name not in self._commands_help:
            return None
        module = importlib.import_module(f"{self._package}.{cmd_name.replace('-', '_')}")
        command = module.command
        assert isinstance(command, click.Command)
        return command

    def format_commands(self, ctx: click.Context, formatter: click.HelpFormatter) -> None:
        """List the subcommands without importing them."""
        with formatter.section("Commands"):
            formatter.write_dl(sorted(self._commands_help.items()))

    def make_context(self, *args: Any, **kwargs: Any) -> click.Context:
        """Read the arguments, which prints the help where they ask for it."""
        with _reader_may_leave():
            return super().make_context(*args, **kwargs)

    def invoke(self, ctx: click.Context) -> Any:
        """Run the subcommand; errors end it with a message, not with a traceback.

        Raises:
            ShownError: In place of a `WatchdogError` or of any error nobody foresaw.
        """
        with _reader_may_leave():
            return super().invoke(ctx) if ctx.params.get("debug") else self._invoke_shown(ctx)

    def _invoke_shown(self, ctx: click.Context) -> Any:
        try:
            return super().invoke(ctx)
        except WatchdogError as error:
            raise ShownError(str(error), error.help_text, error.exit_code) from error
        except (click.ClickException, click.exceptions.Exit, click.Abort, BrokenPipeError):
            raise
        except OSError as error:
            if error.errno not in _NO_ROOM:
                raise _fault(error) from error
            _discard_output()
            advice = "Nothing is wrong with the input: there is no room where the output goes."
            raise ShownError(f"output: {error.strerror}", advice, UNUSABLE) from error
        except Exception as error:
            raise _fault(error) from error


@contextlib.contextmanager
def _reader_may_leave() -> Iterator[None]:
    """End quietly where nobody reads any more; click would say status 1, which means a hazard."""
    try:
        yield
    except BrokenPipeError:
        _discard_output()
        sys.exit(BROKEN_PIPE)


def _fault(error: Exception) -> ShownError:
    advice = "This is a fault of miles-watchdog; `miles-watchdog --debug …` shows where."
    return ShownError(f"{type(error).__name__}: {error}", advice, FAULT)


def _discard_output() -> None:
    """Send what is still buffered to nowhere, or Python's own end fails on it once more."""
    try:
        null = os.open(os.devnull, os.O_WRONLY)
        os.dup2(null, sys.stdout.fileno())
        os.close(null)
    except (OSError, ValueError):  # no descriptor behind it, in a test
        return


class ShownError(click.ClickException):
    """An error as the user sees it: what failed, and what to do next."""

    def __init__(self, message: str, help_text: str, exit_code: int) -> None:
        super().__init__(message)
        self.help_text = help_text
        vars(self)["exit_code"] = exit_code  # click declares it for the class, reads it from here

    def show(self, file: IO[Any] | None = None) -> None:
        """Print message and advice to stderr, control characters made visible."""
        from watchdog.reports.printable import printable

        click.echo(f"Error: {printable(self.message)}", file=file, err=file is None)
        if self.help_text:
            click.echo(self.help_text, file=file, err=file is None)
