"""How the processes of a run are started: one module a launcher.

A launcher is a module with `launch(args, argv)`, which returns when all rollouts were
trained and raises `RunFailedError` when that became impossible. `LAUNCHERS` names the
modules; they are imported when used, since each brings its own heavy library.
"""

LAUNCHERS = {"torchrun": "miles.launchers.torchrun", "ray": "miles.launchers.ray"}


class RunFailedError(RuntimeError):
    """A run could not start or go on; the message says which part failed, in its own words."""
