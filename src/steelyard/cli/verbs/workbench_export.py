"""The verb `steelyard workbench export`: finished cases, answers, gold tasks, native results, a paper, a release."""

import time
from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Literal

import msgspec
import typer

from steelyard.cli.output import TerminalTable, echo_record, percent_text, print_lines
from steelyard.cli.verbs.workbench_import import (
    DEFAULT_DATABASE,
    DatabaseAddress,
    Force,
    ProjectName,
    existing_project,
    open_workbench,
)
from steelyard.core.errors import ConfigError, EvidenceError, OutputError
from steelyard.core.remedies import Advice, joined
from steelyard.core.text import number_of

if TYPE_CHECKING:
    from sqlalchemy.orm import Session

    from steelyard.core.types import JsonObject
    from steelyard.workbench.figures.people_figures import PeopleFigures
    from steelyard.workbench.storage.database import Database
    from steelyard.workbench.storage.release_tables import StoredRelease

_What = Literal["cases", "answers", "gold", "native", "paper", "release"]
_Evidence = Literal["aligned", "both"]
_WRITTEN = {"cases": "FILE", "answers": "FILE", "gold": "FILE", "paper": "FOLDER"}
"""What ``--out`` has to name, by what is exported; the others print without it."""
_SUFFIXES = {"answers": ".jsonl", "gold": ".jsonl", "native": ".json"}
_BELONGS_TO = {
    "--evidence": ("cases", "release"),
    "--name": ("release",),
    "--freeze": ("release",),
    "--force": ("cases", "answers", "gold", "native"),
    "--json": ("native", "release"),
}
_SAME = " It was there, with equal content."


def export_project(
    *,
    project: ProjectName,
    what: Annotated[_What, typer.Option("--what", help="What to export, as above.")] = "cases",
    out: Annotated[
        Path | None, typer.Option("--out", help="The file to write; of a paper and a release, the folder.")
    ] = None,
    name: Annotated[str | None, typer.Option("--name", help="The release, such as 1.0. Default: list all.")] = None,
    freeze: Annotated[bool, typer.Option("--freeze", help="Make a release of this new --name.")] = False,
    evidence: Annotated[
        _Evidence | None,
        typer.Option(
            "--evidence",
            help="Of cases and a release: what stands after alignment, or the first answers of both people, too."
            " Default: aligned.",
        ),
    ] = None,
    force: Force = False,
    database: DatabaseAddress = DEFAULT_DATABASE,
    as_json: Annotated[bool, typer.Option("--json", help="Print native results, or releases, as JSON.")] = False,
) -> None:
    """Write what a project has: finished cases, every answer, gold tasks, results, a text for a paper, a release.

    Example: `steelyard workbench export --project bench --out bench.jsonl`

    Example: `steelyard workbench export --project bench --what answers --out answers.jsonl`

    Example: `steelyard workbench export --project bench --what gold --out gold.jsonl`

    Example: `steelyard workbench export --project natives --what native`

    Example: `steelyard workbench export --project bench --what paper --out paper`

    Example: `steelyard workbench export --project bench --what release --name 1.0 --freeze --out bench-1.0`

    Example: `steelyard workbench export --project bench --what release`

    cases: the finished items with every judgment and where it came from.

    answers: every answer, one a line, with all of its origin, for any kind of tasks; also of unfinished items, dropped
    prompts and rejected rounds, to gold tasks, and of people who could not judge.

    gold: each gold task with its truth, whose answer that was, and everybody's result; the accuracy by person is
    printed.

    native: what native speakers say of items of the kind native_check, by language, in shares with 95% intervals. It is
    printed; `--out` writes it as JSON.

    paper: how the project was annotated, as paragraph and tables, in Markdown and LaTeX, English and Chinese;
    figures.json has every number.

    release: `--freeze` keeps the finished items under a new `--name`, with a manifest of hashes, a card and tables:
    they stay, whatever is annotated, rejected or erased later. `--out` writes a release: always the same bytes.
    """
    options = {"--evidence": evidence, "--name": name, "--freeze": freeze, "--force": force, "--json": as_json}
    _check_options(what, out, options)
    opened = open_workbench(database)
    if what == "native":
        _export_native(opened, project, out, force=force, as_json=as_json)
    elif what == "release" and name is None:
        _list_releases(opened, project, as_json=as_json)
    elif what == "release":
        assert name is not None, "listed above"
        lines: list[str] = []
        if freeze:
            release, lines = _make_release(opened, project, name, out, evidence or "aligned")
        else:
            release = _existing_release(opened, project, name, out, evidence)
        if out is not None:
            is_new = _write_release(opened, release, out)
            lines.append(f"{out} has release {name} of {project}.{'' if is_new else _SAME}")
        echo_record(release.manifest | {"sha256": release.sha256}) if as_json else print_lines(lines)
    else:
        assert out is not None, "checked above"
        if what == "cases":
            _export_cases(opened, project, out, evidence or "aligned", force=force)
        elif what == "paper":
            _export_paper(opened, project, out)
        else:
            _export_records(opened, project, out, is_gold=what == "gold", force=force)


def _check_options(what: _What, out: Path | None, options: Mapping[str, str | bool | None]) -> None:
    """Raise ConfigError for an option that does not belong to what is exported, and for one that is missing."""
    for option, value in options.items():
        if value not in (None, False) and what not in _BELONGS_TO[option]:
            raise ConfigError(
                f"--what {what} has no {option}",
                where=option,
                allowed=f"with --what {', '.join(_BELONGS_TO[option])}",
                do=f"omit {option}, or change --what",
            )
    if what == "release" and options["--name"] is None:
        for option, value in (("--out", out), ("--evidence", options["--evidence"]), ("--freeze", options["--freeze"])):
            if value:
                raise ConfigError(
                    "releases are listed where none is named", where=option, do="name the release: --name NAME"
                )
    if out is None:
        if kind := _WRITTEN.get(what):
            raise ConfigError(f"--what {what} writes a {kind.lower()}", where="--out", do=f"name it: --out {kind}")
        if options["--force"]:
            raise ConfigError("no file is named that could be replaced", where="--force", do="name it: --out FILE")
    elif out.suffix != (suffix := _SUFFIXES.get(what, out.suffix)):
        raise ConfigError(f"{out.name!r} does not end in {suffix}", where="--out", do=f"name it: --out NAME{suffix}")


def _record_export(opened: "Database", project: str, detail: "JsonObject") -> None:
    """Write into the audit log that data of a project are taken out."""
    from steelyard.workbench.storage.audit_log import AuditEvent, record

    def work(session: "Session") -> None:
        stored = existing_project(session, project)
        record(session, AuditEvent("exported", "project", stored.id, None, detail), at=time.time())

    opened.write(work)


def _export_cases(opened: "Database", project: str, out: Path, evidence: _Evidence, *, force: bool) -> None:
    from steelyard.io.atomic import write_once
    from steelyard.io.cases import write_cases
    from steelyard.workbench.pipeline.case_export import export_cases
    from steelyard.workbench.pipeline.projects import count_states
    from steelyard.workbench.pipeline.waiting import waiting_lines

    with opened.reading() as session:
        number = existing_project(session, project).id
        num_finished = count_states(session, number).get("finished", 0)
        waiting = waiting_lines(session, number)
    if not num_finished:
        raise EvidenceError(
            Advice("no item is finished: ", joined(", ", list(waiting)) or "there are no items"),
            where=project,
            do="let these people act; a project made by import with --without-review needs no reviewers",
        )
    _record_export(opened, project, {"evidence": evidence})
    with opened.reading() as session:
        stored = existing_project(session, project)
        number, is_new = write_once(
            out, lambda place: write_cases(place, export_cases(session, stored, evidence=evidence)), force=force
        )
    dropped = f" {number_of(num_finished - number, 'prompt')} dropped by review." if num_finished > number else ""
    unfinished = [f"  not finished: {line}" for line in waiting]
    if evidence == "both":
        unfinished.append("  with the first answers of both people; of what stands: resolve --only evidence=aligned")
    same = "" if is_new else _SAME
    print_lines([f"{number_of(number, 'finished item')} in {out}.{dropped}{same}", *unfinished])


def _export_records(opened: "Database", project: str, out: Path, *, is_gold: bool, force: bool) -> None:
    """Write answers or gold tasks, one a line."""
    from steelyard.io.atomic import write_once
    from steelyard.io.rows import write_rows
    from steelyard.workbench.figures.people_figures import people_figures
    from steelyard.workbench.results.answer_records import answer_records, gold_records

    _record_export(opened, project, {"records": "gold" if is_gold else "answers"})
    with opened.reading() as session:
        stored = existing_project(session, project)
        # Read first: the records leave nothing of the project in the session.
        figures = people_figures(session, stored) if is_gold else None
        read = gold_records if is_gold else answer_records
        number, is_new = write_once(
            out, lambda place: write_rows(place, map(msgspec.to_builtins, read(session, stored))), force=force
        )
    written = number_of(number, "gold task" if is_gold else "answer")
    print_lines([f"{written} in {out}.{'' if is_new else _SAME}", *(_accuracy(figures) if figures else ())])


def _accuracy(figures: "PeopleFigures") -> Iterator[TerminalTable]:
    """Yield the accuracy on gold tasks by person, and of all answers, with 95% intervals."""
    people = sorted((each for each in figures.people if each.gold_answers), key=lambda each: each.pseudonym)
    if people:
        rows = [[each.pseudonym, str(each.gold_answers), percent_text(each.gold)] for each in people]
        rows.append(["all", str(sum(each.gold_answers for each in people)), percent_text(figures.gold)])
        yield TerminalTable("Accuracy on gold tasks", ["answers", "accuracy"], rows)


def _export_native(opened: "Database", project: str, out: Path | None, *, force: bool, as_json: bool) -> None:
    from steelyard.annotation.native_results import native_results
    from steelyard.io.atomic import write_once
    from steelyard.io.rows import write_rows
    from steelyard.workbench.pipeline.case_export import export_cases

    with opened.reading() as session:
        results = native_results(export_cases(session, existing_project(session, project), evidence="aligned"))
    written: list[str] = []
    if out is not None:
        number, is_new = write_once(
            out, lambda place: write_rows(place, map(msgspec.to_builtins, results)), force=force
        )
        written = [f"{number_of(number, 'language')} in {out}.{'' if is_new else _SAME}"]
    if as_json:
        echo_record(results)
        return
    judges = sorted({judge for each in results for judge in each.judges})
    heads = ["items", "as reference", "same", "reads native", "suited", *judges]
    rows = [
        [
            each.language or "none",
            str(each.num_items),
            *map(percent_text, (each.reference, each.same, each.native, each.suited)),
            *(percent_text(each.judges[judge]) if judge in each.judges else "" for judge in judges),
        ]
        for each in results
    ]
    note = " (simulated people: evidence of nothing)" if any(each.simulated for each in results) else ""
    title = f"Native speakers of project {project}{note}" if results else "No finished item of a native-speaker check."
    print_lines([TerminalTable(title, heads, rows) if rows else title, *written])


def _export_paper(opened: "Database", project: str, out: Path) -> None:
    """Write how a project was annotated: people, gate, alignment, reviews, agreement, gold tasks, time, guidelines."""
    from steelyard.io.atomic import sweep_parts, write_text
    from steelyard.workbench.results.paper_figures import paper_figures
    from steelyard.workbench.results.paper_pages import paper_pages

    with opened.reading() as session:
        made = paper_figures(session, existing_project(session, project), at=time.time())
    if out.exists() and not out.is_dir():
        raise OutputError("is a file", where=str(out), do="name a folder: --out FOLDER")
    out.mkdir(parents=True, exist_ok=True)
    pages = paper_pages(made)
    for name, text in pages.items():
        # What a run that was killed left.
        sweep_parts(out / name)
        write_text(out / name, text)
    simulated = " The people are simulated, as the paragraph says." if made.is_simulated else ""
    print_lines([f"{out} has {', '.join(sorted(pages))}.{simulated}"])


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
    opened: "Database", project: str, name: str, out: Path | None, evidence: _Evidence
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
    opened: "Database", project: str, name: str, out: Path | None, evidence: _Evidence | None
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
