"""The training stack under watch: miles' weight-sync path at CPU size, with upstream's names."""
