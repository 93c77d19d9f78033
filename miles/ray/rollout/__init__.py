"""Rollout engines and their manager as Ray actors."""
