"""Names of sections, made safe: for the black box, and as part of a path.

A section is called what its user likes: with slashes, line breaks, of any length. Its incident is
a folder of that name, and has the same one on all ranks.
"""

from __future__ import annotations

import re
import zlib

UNNAMED = "unnamed"
"""What a section without a name is called."""

# A text of the black box holds 190 bytes.
_MAX_SECTION_BYTES = 160
_MAX_SLUG_CHARS = 64
_UNSAFE = re.compile(r"[^A-Za-z0-9_.+-]+")


def section_name(name: object) -> str:
    """The name as it is kept: printable text that the black box holds whole."""
    # Almost every name is this; a mark must not cost more than that.
    if type(name) is str and name.isidentifier() and len(name) <= _MAX_SLUG_CHARS:
        return name
    text = str(name).encode(errors="replace").decode()
    text = "".join(c if c.isprintable() else " " for c in text).strip() or UNNAMED
    data = text.encode()
    if len(data) <= _MAX_SECTION_BYTES:
        return text
    return f"{data[:_MAX_SECTION_BYTES].decode(errors='ignore')} {_digest(text)}"


def slug(section: str) -> str:
    """The name as part of a path: one component, bounded; its own slug is itself.

    A name that had to be changed ends in a hash of it, so that two names stay two.
    """
    safe = _UNSAFE.sub("-", section).lstrip(".-")
    if safe == section and len(safe) <= _MAX_SLUG_CHARS:
        return section
    digest = _digest(section)
    return f"{safe[: _MAX_SLUG_CHARS - len(digest) - 1] or 'section'}-{digest}"


def incident_id(section: str, index: int) -> str:
    """What the incident of a section is called: `weight_sync-0012`."""
    return f"{slug(section)}-{index:04d}"


def _digest(text: str) -> str:
    return f"{zlib.crc32(text.encode(errors='replace')):08x}"
