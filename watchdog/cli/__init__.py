"""The command line: `miles-watchdog SUBCOMMAND`, one module each.

What the statuses mean that it exits with stands in `watchdog.exit_status`.
"""

from __future__ import annotations

import click

from watchdog.cli.lazy_group import LazyGroup

# Name of the subcommand and of its module; the sentence is what `--help` lists, so that it
# need not import them. A test keeps it equal to the first sentence of the command's own help.
COMMANDS = {
    "attach": "Say who holds up a job that hangs now on this node, and why.",
    "check": "Say what in a launch command is known to hang, before it runs.",
    "demo": "Run a training job that hangs, and watch the watchdog catch it.",
    "diagnose": "Say who holds a job up and why, from files of any name.",
    "incidents": "List the incidents below a folder, newest first.",
    "report": "Render an incident again, diagnosed with the rules of this version.",
    "rules": "List the known causes, or explain one.",
    "settings": "Show every setting, its value here, and where the value comes from.",
}


@click.group(
    cls=LazyGroup,
    commands_help=COMMANDS,
    package="watchdog.cli",
    context_settings={"help_option_names": ["-h", "--help"], "max_content_width": 100},
)
@click.version_option(package_name="miles-watchdog", prog_name="miles-watchdog")
@click.option("--debug", is_flag=True, help="Show the traceback of an error.")
def group(debug: bool) -> None:
    """Say which rank holds up a hung RL weight sync, where, and why.

    MILES_WATCHDOG=1 in the environment of a run turns the watchdog on; these commands are for
    before and after.
    """
    del debug  # read by LazyGroup, where errors are shown


def main() -> None:
    """Run the command line and exit with its status."""
    group.main(prog_name="miles-watchdog")
