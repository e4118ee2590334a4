"""The file by which later stages find a project: ``project.json``, with the address of its database and its number.

A project is found by its number and the time at which it was made, so that another name does not hide it.
"""

import os
from pathlib import Path

import msgspec
from sqlalchemy.orm import Session

from steelyard.core.errors import ConfigError, FileError
from steelyard.core.types import Record
from steelyard.io.atomic import write_text
from steelyard.io.lines import check_text, read_whole
from steelyard.workbench.storage.database import DATABASE_FILE, Database, open_workbench
from steelyard.workbench.storage.tables import StoredProject

PROJECT_FILE = "project.json"


class ProjectReference(Record, frozen=True, kw_only=True, omit_defaults=False):
    """Where a project is. ``name`` is that of the time at which the cases were imported.

    ``database`` is empty for the database in the same folder, which simulated people have. ``secret`` names the
    environment variable that has the address where the address has a password.
    """

    format: int = 1
    database: str
    secret: str | None
    project: int
    name: str
    created_at: float
    is_simulated: bool

    @classmethod
    def of(cls, project: StoredProject, *, database: str, secret: str | None) -> "ProjectReference":
        """Return where a project is, in the database of this address."""
        return cls(
            database=database,
            secret=secret,
            project=project.id,
            name=project.name,
            created_at=project.created_at,
            is_simulated=project.is_simulated,
        )


def write_reference(path: Path, reference: ProjectReference) -> None:
    """Write the file of a project."""
    write_text(path, msgspec.json.format(msgspec.json.encode(reference), indent=2).decode() + "\n")


def read_reference(path: Path) -> ProjectReference:
    """Read the file of a project. Raises FileError for a file of another form."""
    check_text(path)
    try:
        return msgspec.json.decode(read_whole(path), type=ProjectReference)
    except (msgspec.DecodeError, UnicodeDecodeError, RecursionError) as error:
        allowed = f'the {PROJECT_FILE} of a stage with verb = "annotate"'
        raise FileError(f"not the file of a project ({error})", where=str(path), allowed=allowed) from error


def address_of(database: str, secret: str | None) -> str:
    """Return the address of a database: as it is written, or the value of the environment variable ``secret``.

    Raises ConfigError for a variable that is not set.
    """
    if secret is None:
        return database
    if not (address := os.environ.get(secret)):
        problem = f"the environment variable {secret} is not set"
        raise ConfigError(problem, where="secret", do=f"export {secret}=postgresql://USER:PASSWORD@HOST/NAME")
    return address


def open_database(reference: ProjectReference, path: Path) -> Database:
    """Open the database of a project. Raises FileError where it is absent or of a newer version.

    ``path`` is the file that ``reference`` comes from.
    """
    if not reference.database and reference.secret is None:
        return open_workbench(f"sqlite:///{path.parent / DATABASE_FILE}")
    return open_workbench(address_of(reference.database, reference.secret))


def find_project(session: Session, reference: ProjectReference, *, where: str) -> StoredProject:
    """Return the project of any name. Raises FileError where the database has another in its place."""
    project = session.get(StoredProject, reference.project)
    if project is None or project.created_at != reference.created_at:
        raise FileError(
            f"the database has no project {reference.name!r} with the number {reference.project}",
            where=where,
            do="restore a backup of the database that has it, or remove the stage's folder to import the cases anew",
        )
    return project
