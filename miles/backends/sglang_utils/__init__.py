"""The trainer's side of the SGLang HTTP interface."""
