"""The process beside the ranks of a node. Standard library only, to stay small."""
