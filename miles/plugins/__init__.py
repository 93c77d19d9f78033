"""Ready-made parts for the command line's `--custom-…-path` flags."""
