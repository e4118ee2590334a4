"""Releases of a project on the command line: listed, made, and written as they were made."""

import time
from pathlib import Path
from typing import TYPE_CHECKING

from steelyard.cli.output import TerminalTable, echo_record, print_lines
from steelyard.cli.verbs.workbench_import import SAME, Evidence, existing_project
from steelyard.core.errors import ConfigError, OutputError
from steelyard.core.text import number_of

if TYPE_CHECKING:
    from steelyard.workbench.storage.database import Database
    from steelyard.workbench.storage.release_tables import StoredRelease


def export_release(
    opened: "Database",
    project: str,
    name: str | None,
    out: Path | None,
    *,
    freeze: bool,
    evidence: Evidence | None,
    as_json: bool,
) -> None:
    """List the releases of a project, or write the one of a name, which ``freeze`` makes first."""
    if name is None:
        _list_releases(opened, project, as_json=as_json)
        return
    lines: list[str] = []
    if freeze:
        release, lines = _make_release(opened, project, name, out, evidence or "aligned")
    else:
        release = _existing_release(opened, project, name, out, evidence)
    if out is not None:
        is_new = _write_release(opened, release, out)
        lines.append(f"{out} has release {name} of {project}.{'' if is_new else SAME}")
    echo_record(release.manifest | {"sha256": release.sha256}) if as_json else print_lines(lines)


def _list_releases(opened: "Database", project: str, *, as_json: bool) -> None:
    from steelyard.workbench.results.releases import releases_of

    with opened.reading() as session:
        releases = releases_of(session, existing_project(session, project).id)
    if as_json:
        echo_record([each.manifest | {"sha256": each.sha256} for each in releases])
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


def _make_release(
    opened: "Database", project: str, name: str, out: Path | None, evidence: Evidence
) -> tuple["StoredRelease", list[str]]:
    """Freeze the finished items under a new name. Returns the release, and lines about it."""
    from steelyard.workbench.results.releases import make_release, releases_of

    with opened.reading() as session:
        number = existing_project(session, project).id
        names = {each.name for each in releases_of(session, number)}
    if name in names:
        raise ConfigError(
            f"the project {project!r} has a release {name!r}",
            where="--name",
            do="omit --freeze to write it; or give a new release another name",
        )
    if out is not None and out.exists() and (not out.is_dir() or any(out.iterdir())):
        raise OutputError(
            "is there already, and a new release has a date of its own",
            where=str(out),
            do="name a new folder: --out FOLDER",
        )
    release = make_release(opened, number, name, evidence=evidence, by=None, at=time.time())
    about = (
        f"{number_of(release.manifest['items'], 'item')} with {number_of(release.manifest['judgments'], 'judgment')}"
    )
    return release, [f"Release {name} of {project}: {about}.", f"  SHA-256 of its manifest: {release.sha256}"]


def _existing_release(
    opened: "Database", project: str, name: str, out: Path | None, evidence: Evidence | None
) -> "StoredRelease":
    """Return the release of this name: a misspelt one makes no release."""
    from steelyard.workbench.results.releases import releases_of

    with opened.reading() as session:
        releases = {each.name: each for each in releases_of(session, existing_project(session, project).id)}
    if name not in releases:
        raise ConfigError(
            f"the project {project!r} has no release {name!r}",
            where="--name",
            allowed=", ".join(releases) or "none: it has no release",
            do="name one of these, or make it: --freeze",
        )
    release = releases[name]
    if out is None:
        raise ConfigError("this release exists already", where="--name", do="write it: --out FOLDER")
    if evidence not in (None, release.manifest["evidence"]):
        raise ConfigError(
            f"the release {name!r} has the evidence {release.manifest['evidence']}",
            where="--evidence",
            do="omit --evidence, or make a release of another name",
        )
    return release


def _write_release(opened: "Database", release: "StoredRelease", out: Path) -> bool:
    """Write all files of a release, checked, into a folder. Returns whether the folder is new."""
    from steelyard.io.atomic import write_folder_once
    from steelyard.workbench.results.releases import files_of, release_file

    with opened.reading() as session:

        def write(folder: Path) -> None:
            for path in files_of(release):
                with (folder / path).open("wb") as file:
                    file.writelines(release_file(session, release, path))

        return write_folder_once(out, write)[1]
