"""Tables of releases: what was exported under a name, kept as it was, so that it can be exported again at any time.

The bytes of a release are stored, not a query that would give them again: later rounds, other settings and a newer
program change nothing in it. They hold pseudonyms alone, so that erasing a person leaves a release as it is.
"""

from sqlalchemy import ForeignKey, LargeBinary, String, UniqueConstraint
from sqlalchemy.orm import Mapped, mapped_column

from steelyard.core.types import JsonObject
from steelyard.workbench.storage.tables import WorkbenchTable


class StoredRelease(WorkbenchTable):
    """A release of a project. ``manifest``: `ReleaseManifest`; ``sha256`` is that of its file, which has all others'.

    ``person_id``: who made it; null for the command line.
    """

    __tablename__ = "releases"
    __table_args__ = (UniqueConstraint("project_id", "name"),)

    project_id: Mapped[int] = mapped_column(ForeignKey("projects.id"))
    name: Mapped[str] = mapped_column(String(100))
    person_id: Mapped[int | None] = mapped_column(ForeignKey("people.id"))
    at: Mapped[float]
    sha256: Mapped[str] = mapped_column(String(64))
    manifest: Mapped[JsonObject]


class StoredReleasePart(WorkbenchTable):
    """A part of a file of a release, compressed (zlib); the parts of a file in the order of their numbers are it."""

    __tablename__ = "release_parts"
    __table_args__ = (UniqueConstraint("release_id", "path", "number"),)

    release_id: Mapped[int] = mapped_column(ForeignKey("releases.id"))
    path: Mapped[str] = mapped_column(String(100))
    number: Mapped[int]
    content: Mapped[bytes] = mapped_column(LargeBinary)
