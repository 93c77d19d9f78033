"""The run on Ray. Nothing here but `launchers.ray` and what it imports needs Ray itself."""
