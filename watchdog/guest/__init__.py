"""Manners in somebody else's process: own threads, descriptors, notices, and the host's timer."""
