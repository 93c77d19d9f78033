"""What to hook in which framework: one file a framework, one line in the list here."""

ADAPTERS: tuple[str, ...] = ("torch_distributed", "miles")
