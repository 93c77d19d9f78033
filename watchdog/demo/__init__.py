"""Training jobs that hang on purpose, for `miles-watchdog demo`."""
