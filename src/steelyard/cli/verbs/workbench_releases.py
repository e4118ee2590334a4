"""The verbs of `steelyard workbench` for releases: freezing what is finished, and exporting it again as it was."""

import time
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Literal

import typer

from steelyard.cli.output import TerminalTable, echo_record, print_lines
from steelyard.cli.verbs.workbench_data import (
    DEFAULT_DATABASE,
    DatabaseAddress,
    existing_project,
    open_workbench,
)
from steelyard.core.errors import ConfigError
from steelyard.core.text import number_of

if TYPE_CHECKING:
    from sqlalchemy.orm import Session

    from steelyard.workbench.storage.release_tables import StoredRelease

_Project = Annotated[str, typer.Option("--project", help="The name of the project.")]


def release_items(
    name: Annotated[str, typer.Argument(help="The name or version of the release, such as 1.0.")],
    *,
    project: _Project,
    evidence: Annotated[
        Literal["aligned", "both"],
        typer.Option("--evidence", help="What stands after alignment, or the first answers of both people, too."),
    ] = "aligned",
    database: DatabaseAddress = DEFAULT_DATABASE,
) -> None:
    """Freeze the finished items of a project under a name: the cases, a manifest with hashes, a card and the tables.

    The release stays in the database as it is, whatever is annotated, rejected or erased later.

    Example: `steelyard workbench release 1.0 --project bench`
    """
    from steelyard.workbench.results.releases import make_release

    opened = open_workbench(database)
    with opened.reading() as session:
        number = existing_project(session, project).id
    made = make_release(opened, number, name, evidence=evidence, by=None, at=time.time())
    items, judgments = made.manifest["items"], made.manifest["judgments"]
    print_lines(
        [
            f"Release {name} of {project}: {number_of(items, 'item')} with {number_of(judgments, 'judgment')}.",
            f"  SHA-256 of its manifest: {made.sha256}",
        ]
    )


def list_releases(
    *,
    project: _Project,
    name: Annotated[str | None, typer.Option("--name", help="The release to write. Default: list all.")] = None,
    out: Annotated[Path | None, typer.Option("--out", help="The folder to write the release into.")] = None,
    database: DatabaseAddress = DEFAULT_DATABASE,
    as_json: Annotated[bool, typer.Option("--json", help="Print the manifests as JSON.")] = False,
) -> None:
    """List the releases of a project, or write one again: the same bytes as when it was made.

    Example: `steelyard workbench releases --project bench`

    Example: `steelyard workbench releases --project bench --name 1.0 --out bench-1.0`
    """
    from steelyard.io.atomic import write_folder_once
    from steelyard.workbench.results.releases import releases_of

    if (name is None) != (out is None):
        raise ConfigError("--name and --out belong together", where="--name", do="give both, or neither for a list")
    with open_workbench(database).reading() as session:
        releases = releases_of(session, existing_project(session, project).id)
        if name is not None and out is not None:
            chosen = next((release for release in releases if release.name == name), None)
            if chosen is None:
                names = ", ".join(release.name for release in releases)
                raise ConfigError(
                    f"there is no release {name!r}", where="--name", allowed=names or "none yet: make one"
                )
            _, is_new = write_folder_once(out, lambda folder: _write(session, chosen, folder))
            same = "" if is_new else " It was there, with equal content."
            print_lines([f"{out} has release {name} of {project}.{same}"])
            return
    if as_json:
        echo_record([release.manifest | {"sha256": release.sha256} for release in releases])
        return
    rows = [
        [
            each.name,
            each.manifest["exported_at"],
            f"{each.manifest['items']:,}",
            f"{each.manifest['judgments']:,}",
            each.sha256,
        ]
        for each in releases
    ]
    heads = ["made", "items", "judgments", "SHA-256"]
    print_lines([TerminalTable(f"Releases of {project}", heads, rows) if rows else f"{project} has no release."])


def _write(session: "Session", release: "StoredRelease", folder: Path) -> None:
    """Write all files of a release, checked, into an empty folder."""
    from steelyard.workbench.results.releases import files_of, release_file

    for path in files_of(release):
        with (folder / path).open("wb") as file:
            for part in release_file(session, release, path):
                file.write(part)
