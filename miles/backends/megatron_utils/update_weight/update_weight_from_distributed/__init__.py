"""The weight sync of engines on devices of their own: one module a way of transfer."""
