"""What to hook in which framework: one file a framework, one line in the list here.

Each module has `FRAMEWORK` (its name in reports, "" for a library) and `HOOKS`. The engine that
applies them is `watchdog.adapters.patching`; the collectives of torch have one of their own.
"""

ADAPTERS: tuple[str, ...] = (
    "miles",
    "slime",
    "verl",
    "skyrl",
    "prime_rl",
    "openrlhf",
    "trl",
    "nemo_rl",
    "areal",
    "torch_memory_saver",
    "ray",
)
