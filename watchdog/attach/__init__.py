"""A job that hangs now and that no watchdog sees: looked at from outside, twice.

`look` takes the samples, `open_logs`, `command_lines` and `libraries` read the rest,
`evidence_of_job` puts it together, `observation` is the order of it all.
"""
