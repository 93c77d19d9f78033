"""How the nodes of a job meet over an incident: boards to write on, and what is written there.

Ranks of one host share a folder and need none of this. Across hosts there is the store of
`torch.distributed` (by a connection of our own) or a run folder that the hosts share. Both are
the same to the rest: a board with notes under keys.
"""
