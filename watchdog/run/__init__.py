"""The files of one run, and what they are called."""
