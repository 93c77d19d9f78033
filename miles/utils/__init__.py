"""Arguments, memory and groups of the training stack."""
