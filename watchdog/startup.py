"""What the `.pth` start-up hook calls in every process that has `MILES_WATCHDOG` set."""


def start() -> None:
    """Arm the import hooks of this process."""
