"""How the processes of a run are started: one module a launcher.

A launcher is a module with `launch(args, argv)`, which returns when all rollouts were
trained and raises `RunFailedError` when that became impossible. `LAUNCHERS` names the
modules; they are imported when used, since each brings its own heavy library.
"""

LAUNCHERS = {"torchrun": "miles.launchers.torchrun"}


class RunFailedError(RuntimeError):
    """A rank or an engine failed; the message says which, and its own words."""
