"""One state of a project as a case file: what the stages of people export, and hash."""

import time
from collections.abc import Container, Iterable, Iterator, Mapping
from contextlib import contextmanager
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import NamedTuple

from msgspec.structs import replace
from sqlalchemy import select
from sqlalchemy.orm import Session

from steelyard.core.types import Case
from steelyard.io.cases import write_cases
from steelyard.io.hashing import file_hash
from steelyard.workbench.pipeline.case_export import Evidence, export_cases
from steelyard.workbench.pipeline.projects import ENDED, count_states, settings_of
from steelyard.workbench.pipeline.waiting import waiting_lines
from steelyard.workbench.results.paper_figures import paper_figures
from steelyard.workbench.results.paper_pages import paper_pages
from steelyard.workbench.stages._project_file import find_project, open_database, read_reference
from steelyard.workbench.storage.tables import StoredItem, StoredProject

"""The states of items that nobody works on any more."""


class ProjectExport(NamedTuple):
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


@contextmanager
def exported_project(project: Path, evidence: Evidence, *, has_pages: bool) -> Iterator[ProjectExport]:
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
                    export_cases(session, stored, evidence=evidence), prompts, is_simulated=is_simulated
                )
                write_cases(file, cases)
                dropped = _dropped(session, number, prompts) if has_pages else ()
            yield ProjectExport(
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
        .where(StoredItem.project_id == project, StoredItem.state.in_(ENDED))
        .order_by(StoredItem.place, StoredItem.id)
    )
    return tuple(prompt for prompt, language in rows if (prompt, language) not in exported)
