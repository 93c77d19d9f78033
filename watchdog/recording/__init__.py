"""What is written down while training runs: marks, collectives, groups, flags, memory."""
