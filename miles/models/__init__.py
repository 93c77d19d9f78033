"""The models that the stack trains and serves."""
