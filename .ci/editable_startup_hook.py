"""Build hook: an editable install gets the start-up `.pth` file as well."""

from typing import Any

from hatchling.builders.hooks.plugin.interface import BuildHookInterface

_PTH = "miles_watchdog_startup.pth"


class EditableStartupHook(BuildHookInterface):
    """Adds the `.pth` to editable wheels, which ignore `force-include`."""

    def initialize(self, version: str, build_data: dict[str, Any]) -> None:
        """Add the file when hatchling builds the editable wheel."""
        if version == "editable":
            build_data["force_include_editable"][f"watchdog/{_PTH}"] = _PTH
