"""Rollouts: the engine process, the prompts and rewards, and what drives them."""
