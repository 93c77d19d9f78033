"""How weights travel from the trainer into the rollout engines."""
