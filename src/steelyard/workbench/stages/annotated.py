"""The stage `annotated` of a recipe: the final answers of a project, as cases with judgments and ratings.

Its input is the export, not the database, which changes with every click: the hash of the export is in the record. A
decision that people reopen changes that hash, so that the recipe says that the stage differs.
"""

import time
from collections import Counter, defaultdict
from collections.abc import Container, Iterable, Iterator, Mapping
from contextlib import contextmanager
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import NamedTuple

from msgspec.structs import replace
from sqlalchemy import select
from sqlalchemy.orm import Session

from steelyard.annotation.people_runs import DROPPED, AnnotatedSummary, refusals_of, reviewed_prompt
from steelyard.core.config import Config as BaseConfig
from steelyard.core.errors import ConfigError, EvidenceError, WaitingError
from steelyard.core.remedies import Advice, Command, Remedy, joined
from steelyard.core.text import number_of
from steelyard.core.types import Case, Counts, Input, Rating, Run
from steelyard.io.atomic import write_text
from steelyard.io.cases import read_cases, write_cases
from steelyard.io.hashing import file_hash
from steelyard.io.kept import KeptPrompts, read_kept, write_kept
from steelyard.io.lines import check_readable
from steelyard.io.run_folder import RUN_FILE, Result, run_stage
from steelyard.workbench.pipeline.case_export import Evidence, export_cases
from steelyard.workbench.pipeline.projects import count_states, settings_of
from steelyard.workbench.pipeline.waiting import waiting_lines
from steelyard.workbench.results.paper_figures import paper_figures
from steelyard.workbench.results.paper_pages import paper_pages
from steelyard.workbench.stages._project_file import find_project, open_database, read_reference
from steelyard.workbench.storage.tables import StoredItem, StoredProject

_ENDED = {"finished", "dropped"}
_KEPT_FILE = "kept.json"


class Config(BaseConfig, frozen=True):
    """Settings of the export of people's answers to a recipe."""

    evidence: Evidence = "aligned"
    """The answers that stand after alignment and review, or the first answers of both people, too."""
    least_quality: float = 50.0
    """The points, of 100, below which people refuse a translation: its prompt leaves the prompts that stay."""

    def __post_init__(self) -> None:
        if not 0 <= self.least_quality <= 100:
            raise ConfigError(f"{self.least_quality} points", where="least_quality", allowed="0 to 100")


_DEFAULT = Config()


class _Export(NamedTuple):
    """One state of a project: its case file with the hash, its items by state, and texts about it.

    ``dropped`` are the prompts that people dropped; ``waiting`` is what is unfinished, in sentences.
    """

    file: Path
    sha256: str
    where: str
    project: str
    kind: str
    is_simulated: bool
    states: Mapping[str, int]
    dropped: tuple[str, ...]
    waiting: tuple[str, ...]
    pages: Mapping[str, str]


def annotated(
    project: Path, out: Path, config: Config = _DEFAULT, *, kept_prompts: Path | None = None, force: bool = False
) -> Run[AnnotatedSummary]:
    """Export the final answers of a project, which `annotate` names in its ``project.json``.

    Writes ``cases.jsonl``, and into ``paper`` how people annotated. With ``kept_prompts``, the prompts that stay, it
    writes ``kept.json`` without those that people refuse: dropped prompts, items that do not suit their language,
    translations below ``least_quality``. Raises WaitingError while an item is unfinished, EvidenceError where nothing
    is left, FileError for a database that is absent or of a newer version.
    """
    check_readable(project)
    prompts = None if kept_prompts is None else read_kept(kept_prompts)
    is_finished = not force and (out / RUN_FILE).is_file()
    with _exported(project, config, has_pages=not is_finished) as export:
        source = Input(path=f"{export.where} {export.project}", sha256=export.sha256)
        inputs = {"project": project, "export": source}

        def write(result: Result) -> None:
            _write(result, export, config, prompts)

        return run_stage(
            out,
            "annotated",
            Run[AnnotatedSummary],
            write,
            config=config,
            inputs=inputs if kept_prompts is None else {**inputs, "kept_prompts": kept_prompts},
            force=force,
        )


def live_hashes(inputs: Mapping[str, Path], config: Config) -> dict[str, str]:
    """Return the hash that the export has now, by which a recipe tells whether people changed a decision."""
    with _exported(inputs["project"], config, has_pages=False) as export:
        return {"export": export.sha256}


@contextmanager
def _exported(project: Path, config: Config, *, has_pages: bool) -> Iterator[_Export]:
    """Export one state of a project into a temporary file, which is there while the block runs."""
    reference = read_reference(project)
    database = open_database(reference, project)
    try:
        with TemporaryDirectory() as folder:
            file = Path(folder) / "cases.jsonl"
            with database.reading() as session:
                stored = find_project(session, reference, where=database.shown_address)
                number, at = stored.id, time.time()
                pages = paper_pages(paper_figures(session, stored, at=at)) if has_pages else {}
                stored = session.get_one(StoredProject, number)
                name, kind, is_simulated = stored.name, settings_of(stored).tasks.kind, stored.is_simulated
                states = count_states(session, number)
                waiting = waiting_lines(session, number)
                prompts: set[tuple[str, str]] = set()
                cases = _with_origin(
                    export_cases(session, stored, evidence=config.evidence), prompts, is_simulated=is_simulated
                )
                write_cases(file, cases)
                dropped = _dropped(session, number, prompts) if has_pages else ()
            yield _Export(
                file=file,
                sha256=file_hash(file),
                where=database.shown_address,
                project=name,
                kind=kind,
                is_simulated=is_simulated,
                states=states,
                dropped=dropped,
                waiting=waiting,
                pages=pages,
            )
    finally:
        database.close()


def _with_origin(cases: Iterable[Case], prompts: set[tuple[str, str]], *, is_simulated: bool) -> Iterator[Case]:
    """Yield the cases and note their keys; those of simulated people are marked as such.

    Ratings and decisions on prompts have no judgment that would say it.
    """
    for case in cases:
        prompts.add((case.prompt.id, case.prompt.language or ""))
        yield replace(case, meta={**case.meta, "simulated": True}) if is_simulated else case


def _dropped(session: Session, project: int, exported: Container[tuple[str, str]]) -> tuple[str, ...]:
    """Return the prompts of ended items that the export lacks."""
    rows = session.execute(
        select(StoredItem.prompt, StoredItem.language)
        .where(StoredItem.project_id == project, StoredItem.state.in_(_ENDED))
        .order_by(StoredItem.place, StoredItem.id)
    )
    return tuple(prompt for prompt, language in rows if (prompt, language) not in exported)


def _write(result: Result, export: _Export, config: Config, prompts: KeptPrompts | None) -> None:
    if set(export.states) - _ENDED:
        # The address of a server is in an environment variable.
        changes = (Remedy("database", export.where),) if export.where.startswith("sqlite") else ()
        raise WaitingError(
            Advice("items of the project are unfinished: ", joined("; ", export.waiting)),
            where=export.where,
            do=Advice("serve it: ", Command("workbench serve", (), changes), ", and run the same command again"),
            num_waiting=sum(number for state, number in export.states.items() if state not in _ENDED),
        )
    if not export.file.stat().st_size:
        raise EvidenceError("people dropped every prompt: nothing is left", where=export.project)
    totals: Counter[str] = Counter()
    people: set[str] = set()
    refused: defaultdict[str, list[str]] = defaultdict(list)

    def watched() -> Iterator[Case]:
        for case in read_cases(export.file):
            totals.update(cases=1, judgments=len(case.judgments), ratings=len(case.ratings))
            for evidence in (*case.judgments, *case.ratings):
                if evidence.kind == "human":
                    name = evidence.rater if isinstance(evidence, Rating) else evidence.judge
                    people.update((evidence.meta or {}).get("people") or [name])
            for reason in refusals_of(case, least_quality=config.least_quality):
                refused[reviewed_prompt(case)].append(reason)
            yield case

    write_cases(result.path("cases.jsonl"), watched())
    for prompt in export.dropped:
        refused[prompt].append(DROPPED)
    reasons = {prompt: tuple(dict.fromkeys(each)) for prompt, each in refused.items()}
    num_left = None if prompts is None else _write_kept(result, export, prompts, reasons)
    folder = result.path("paper")
    folder.mkdir(exist_ok=True)
    for name, text in export.pages.items():
        write_text(folder / name, text)
    num_dropped = len(export.dropped)
    result.counts = Counts(
        num_in=totals["cases"] + num_dropped,
        num_used=totals["cases"],
        dropped={DROPPED: num_dropped} if num_dropped else {},
    )
    result.summary = AnnotatedSummary(
        project=export.project,
        kind=export.kind,
        is_simulated=export.is_simulated,
        evidence=config.evidence,
        num_cases=totals["cases"],
        num_judgments=totals["judgments"],
        num_ratings=totals["ratings"],
        num_people=len(people),
        refused=dict(sorted(Counter(reason for each in reasons.values() for reason in each).items())),
        num_prompts_left=num_left,
    )


def _write_kept(result: Result, export: _Export, prompts: KeptPrompts, refused: Mapping[str, tuple[str, ...]]) -> int:
    """Write the prompts that stay, without those that people refuse. Returns their number."""
    left = [prompt for prompt in prompts.prompts if prompt not in refused]
    if not left:
        problem = f"people refuse every prompt of the {number_of(len(prompts.prompts), 'prompt')} that stayed"
        raise EvidenceError(
            problem, where=export.project, do="look at their answers, or lower least_quality of this stage"
        )
    seen = {reviewed_prompt(case) for case in read_cases(export.file)} | set(export.dropped)
    if not seen & {*prompts.prompts, *prompts.left_out}:
        do = "name the kept.json of the translation that people looked at"
        raise EvidenceError("people saw none of the prompts of this file", where=_KEPT_FILE, do=do)
    known = {*prompts.prompts, *prompts.left_out}
    reasons = {
        prompt: (*prompts.left_out.get(prompt, ()), *each) for prompt, each in refused.items() if prompt in known
    }
    write_kept(result.path(_KEPT_FILE), left, {**prompts.left_out, **reasons})
    return len(left)
