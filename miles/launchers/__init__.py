"""How the processes of a run are started: one module a launcher.

A launcher is a module with `launch(args, argv)`. `LAUNCHERS` names the modules; they are
imported when used, since each brings its own heavy library.
"""

LAUNCHERS = {"torchrun": "miles.launchers.torchrun"}
