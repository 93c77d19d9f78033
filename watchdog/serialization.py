"""Evidence and diagnosis to JSON and back, strictly."""

from __future__ import annotations

import json
from typing import Any, TypeVar

from cattrs.preconf.json import make_converter

from watchdog.errors import UnreadableEvidenceError
from watchdog.evidence import SCHEMA_VERSION, Evidence

T = TypeVar("T")

_CONVERTER = make_converter(forbid_extra_keys=True, omit_if_default=True)
# A flag's value is whatever JSON holds; cattrs needs to be told that no choice is to be made.
_SCALAR = str | int | float | bool | None
_CONVERTER.register_structure_hook_func(lambda kind: bool(kind == _SCALAR), lambda value, _: value)


def to_data(value: object) -> Any:
    """The plain dicts, lists and scalars of a frozen dataclass; fields at default left out."""
    return _CONVERTER.unstructure(value)


def from_data(data: Any, kind: type[T]) -> T:
    """A dataclass of `kind` from plain data.

    Raises:
        cattrs.BaseValidationError: A field is missing, unknown or of the wrong type.
    """
    return _CONVERTER.structure(data, kind)


def evidence_to_json(evidence: Evidence) -> str:
    """Indented JSON; `schema_version` always present."""
    data = {"schema_version": evidence.schema_version, **to_data(evidence)}
    return json.dumps(data, indent=1, ensure_ascii=False)


def evidence_from_json(text: str) -> Evidence:
    """Read what `evidence_to_json` wrote.

    Raises:
        UnreadableEvidenceError: Not JSON, not evidence, or of another schema version; the
            message names the field.
    """
    try:
        data = json.loads(text)
    except (ValueError, RecursionError) as error:
        raise UnreadableEvidenceError(f"not JSON: {error}") from error
    if not isinstance(data, dict) or "schema_version" not in data:
        raise UnreadableEvidenceError("no schema_version: this is not evidence")
    if "causes" in data:
        raise UnreadableEvidenceError("this is a report, not the evidence that it was made from")
    if data["schema_version"] != SCHEMA_VERSION:
        raise UnreadableEvidenceError(
            f"schema_version {data['schema_version']!r}, this version reads {SCHEMA_VERSION}"
        )
    try:
        return from_data(data, Evidence)
    except Exception as error:  # cattrs raises groups of many kinds
        from cattrs import transform_error

        raise UnreadableEvidenceError("; ".join(transform_error(error)[:5])) from error
