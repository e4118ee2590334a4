"""The verb `steelyard workbench export`: finished cases, answers, gold tasks, native results, a paper, a release."""

import time
from collections.abc import Mapping
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Literal

import typer

from steelyard.cli.output import print_lines
from steelyard.cli.verbs.workbench_import import (
    DEFAULT_DATABASE,
    SAME,
    DatabaseAddress,
    Evidence,
    Force,
    ProjectName,
    existing_project,
    open_workbench,
    record_export,
)
from steelyard.cli.verbs.workbench_records import export_native, export_records
from steelyard.cli.verbs.workbench_releases import export_release
from steelyard.core.errors import ConfigError, EvidenceError, OutputError
from steelyard.core.remedies import Advice, joined
from steelyard.core.text import number_of

if TYPE_CHECKING:
    from steelyard.workbench.storage.database import Database

_What = Literal["cases", "answers", "gold", "native", "paper", "release"]
_WRITTEN = {"cases": "FILE", "answers": "FILE", "gold": "FILE", "paper": "FOLDER"}
"""Path that ``--out`` has to name, by what is exported; the others print without it."""
_SUFFIXES = {"answers": ".jsonl", "gold": ".jsonl", "native": ".json"}
_BELONGS_TO = {
    "--evidence": ("cases", "release"),
    "--name": ("release",),
    "--freeze": ("release",),
    "--force": ("cases", "answers", "gold", "native"),
    "--json": ("native", "release"),
}


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
        Evidence | None,
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
    they stay when items are annotated, rejected or erased later. `--out` writes a release: always the same bytes.
    """
    options = {"--evidence": evidence, "--name": name, "--freeze": freeze, "--force": force, "--json": as_json}
    _check_options(what, out, options)
    opened = open_workbench(database)
    if what == "native":
        export_native(opened, project, out, force=force, as_json=as_json)
    elif what == "release":
        export_release(opened, project, name, out, freeze=freeze, evidence=evidence, as_json=as_json)
    else:
        assert out is not None, "checked above"
        if what == "cases":
            _export_cases(opened, project, out, evidence or "aligned", force=force)
        elif what == "paper":
            _export_paper(opened, project, out)
        else:
            export_records(opened, project, out, is_gold=what == "gold", force=force)


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


def _export_cases(opened: "Database", project: str, out: Path, evidence: Evidence, *, force: bool) -> None:
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
    record_export(opened, project, {"evidence": evidence})
    with opened.reading() as session:
        stored = existing_project(session, project)
        number, is_new = write_once(
            out, lambda place: write_cases(place, export_cases(session, stored, evidence=evidence)), force=force
        )
    dropped = f" {number_of(num_finished - number, 'prompt')} dropped by review." if num_finished > number else ""
    unfinished = [f"  not finished: {line}" for line in waiting]
    if evidence == "both":
        unfinished.append("  with the first answers of both people; of what stands: resolve --only evidence=aligned")
    same = "" if is_new else SAME
    print_lines([f"{number_of(number, 'finished item')} in {out}.{dropped}{same}", *unfinished])


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
