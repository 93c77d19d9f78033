"""The black box of a process: one memory-mapped file that outlives it."""
