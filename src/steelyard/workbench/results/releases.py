"""Releases: a frozen export under a name, with a manifest, a card for readers, and the figures of the paper.

The cases are ranked by what people decided, and ``bench.toml`` beside them makes the folder a benchmark.

The manifest has the SHA-256 of every file, the versions of the guidelines, the settings, and who exported what when.
"""

import hashlib
import re
import zlib
from collections.abc import Iterable, Iterator
from datetime import UTC, datetime
from importlib.metadata import version
from typing import NamedTuple

import msgspec
from sqlalchemy import select
from sqlalchemy.orm import Session

from steelyard.core.errors import EvidenceError
from steelyard.core.names import name_key
from steelyard.core.types import JsonObject, Record
from steelyard.evaluation.benches import BENCH_FILE
from steelyard.io.cases import encode_case
from steelyard.workbench.pipeline.case_export import Evidence, export_cases
from steelyard.workbench.results.paper_figures import PaperFigures, paper_figures
from steelyard.workbench.results.paper_pages import CARDS, paper_pages, release_card
from steelyard.workbench.results.release_bench import ReleaseCounts, rank_cases, state_label_error
from steelyard.workbench.storage.audit_log import AuditEvent, record
from steelyard.workbench.storage.database import Database
from steelyard.workbench.storage.refusals import RefusedError
from steelyard.workbench.storage.release_tables import StoredRelease, StoredReleasePart
from steelyard.workbench.storage.tables import StoredGuideline, StoredPerson, StoredProject

CASES, MANIFEST_FILE = "cases.jsonl", "manifest.json"
_NAME = re.compile(r"[A-Za-z0-9][A-Za-z0-9._-]{0,99}")
_PART_BYTES = 4 * 2**20
"""The size of a part before it is compressed: what a reader holds in memory."""


class ReleasedFile(Record, frozen=True, kw_only=True, omit_defaults=False):
    """A file of a release: its size in bytes and its hash."""

    bytes: int
    sha256: str


class ReleasedGuideline(Record, frozen=True, kw_only=True, omit_defaults=False):
    """A version of a guideline, with the hash of its text. ``category``: empty for all."""

    id: int
    category: str
    language: str
    version: int
    sha256: str


class ReleaseManifest(Record, frozen=True, kw_only=True, omit_defaults=False):
    """A release. ``exported_by``: the pseudonym of a person; null for the command line.

    ``items`` counts the cases of the file, also by language and by category; ``judges`` counts people.
    """

    format: int = 1
    project: str
    release: str
    exported_at: str
    exported_by: str | None
    is_simulated: bool
    software: str
    evidence: Evidence
    seed: int
    settings: JsonObject
    guidelines: tuple[ReleasedGuideline, ...]
    items: int
    items_by_language: dict[str, int]
    items_by_category: dict[str, int]
    judgments: int
    ratings: int
    judges: int
    files: dict[str, ReleasedFile]


class _Content(NamedTuple):
    """The files of a release as compressed parts, and what the manifest states of them."""

    parts: dict[str, list[bytes]]
    files: dict[str, ReleasedFile]


def make_release(
    database: Database, project: int, name: str, *, evidence: Evidence, by: int | None, at: float
) -> StoredRelease:
    """Freeze the finished items of a project under a name. Raises ConfigError for a name that is taken or not allowed.

    Everything is read from one state of the database. Raises RefusedError where no item is finished.
    """
    if not _NAME.fullmatch(name):
        allowed = "1 to 100 letters, digits, points, hyphens and underscores: it names files"
        raise RefusedError(
            f"{name[:50]!r} is not a name of a release", words="release name", where="name", allowed=allowed
        )
    with database.reading() as session:
        row = session.get_one(StoredProject, project)
        _check_free(session, row, name)
        figures = paper_figures(session, row, at=at)
        guidelines = _guidelines(session, project)
        person = None if by is None else session.get_one(StoredPerson, by).pseudonym
        counts = ReleaseCounts()
        cases = rank_cases(export_cases(session, row, evidence=evidence))
        content = _content(map(encode_case, counts.counted(cases)), figures)
        files = {CASES: content.files[CASES].sha256}
        label_error = state_label_error(rank_cases(export_cases(session, row, evidence="both")), files)
    if not counts.numbers["prompts"]:
        problem = f"no item of the project {figures.project!r} is finished"
        raise RefusedError(problem, words="nothing finished", where="project", do="release it later")
    manifest = ReleaseManifest(
        project=figures.project,
        release=name,
        exported_at=f"{datetime.fromtimestamp(at, UTC):%Y-%m-%dT%H:%M:%SZ}",
        exported_by=person,
        is_simulated=figures.is_simulated,
        software=f"steelyard {version('steelyard')}",
        evidence=evidence,
        seed=figures.settings.seed,
        settings=msgspec.to_builtins(figures.settings),
        guidelines=guidelines,
        items=counts.numbers["prompts"],
        items_by_language=dict(sorted(counts.languages.items())),
        items_by_category=dict(sorted(counts.categories.items())),
        judgments=counts.numbers["judgments"],
        ratings=counts.numbers["ratings"],
        judges=len(counts.people),
        files={},
    )
    table = counts.bench_file(name=figures.project, release=name, files=files, label_error=label_error)
    if table is not None:
        _add_file(content, BENCH_FILE, [table.encode()])
    facts = counts.facts(release=name, at=manifest.exported_at, evidence=evidence, sha256=files[CASES])
    for path, language in CARDS.items():
        card = release_card(figures, facts, counts.languages, language, is_bench=table is not None)
        _add_file(content, path, [card.encode()])
    manifest = msgspec.structs.replace(manifest, files=content.files)
    return database.write(lambda session: _store(session, project, content, manifest, by=by, at=at))


def releases_of(session: Session, project: int) -> list[StoredRelease]:
    """Return the releases of a project, the latest first."""
    statement = select(StoredRelease).where(StoredRelease.project_id == project).order_by(StoredRelease.id.desc())
    return list(session.scalars(statement))


def release_file(session: Session, release: StoredRelease, path: str) -> Iterator[bytes]:
    """Yield the parts of a file of a release. Raises EvidenceError at the end where its hash is not the manifest's."""
    expected = release.sha256 if path == MANIFEST_FILE else release.manifest["files"][path]["sha256"]
    digest, after = hashlib.sha256(), -1
    part = select(StoredReleasePart).where(StoredReleasePart.release_id == release.id, StoredReleasePart.path == path)
    # One part at a time: a file may be larger than memory.
    while row := session.scalar(
        part.where(StoredReleasePart.number > after).order_by(StoredReleasePart.number).limit(1)
    ):
        content, after = zlib.decompress(row.content), row.number
        session.expunge(row)
        digest.update(content)
        yield content
    if digest.hexdigest() != expected:
        raise EvidenceError(
            f"{path} of the release {release.name!r} is not what was stored", where=path, do="restore a backup"
        )


def files_of(release: StoredRelease) -> tuple[str, ...]:
    """Return the names of the files of a release, the manifest last."""
    return (*sorted(release.manifest["files"]), MANIFEST_FILE)


def _check_free(session: Session, project: StoredProject, name: str) -> None:
    names = session.scalars(select(StoredRelease.name).where(StoredRelease.project_id == project.id))
    # Names are those of files, and some systems do not tell capital letters apart.
    if (taken := next((other for other in names if name_key(other) == name_key(name)), None)) is not None:
        problem, do = f"the project {project.name!r} has a release {taken!r}", "give this one another name"
        raise RefusedError(problem, words="taken", values={"name": taken}, where="name", do=do)


def _content(lines: Iterable[bytes], figures: PaperFigures) -> _Content:
    content = _Content({}, {})
    _add_file(content, CASES, lines)
    for path, text in paper_pages(figures).items():
        _add_file(content, path, [text.encode()])
    return content


def _add_file(content: _Content, path: str, chunks: Iterable[bytes]) -> None:
    """Add a file in parts of about 4 MB."""
    digest, size, parts, waiting = hashlib.sha256(), 0, list[bytes](), bytearray()
    for chunk in chunks:
        digest.update(chunk)
        size += len(chunk)
        waiting += chunk
        if len(waiting) >= _PART_BYTES:
            parts.append(zlib.compress(bytes(waiting)))
            waiting.clear()
    content.parts[path] = [*parts, zlib.compress(bytes(waiting))]
    content.files[path] = ReleasedFile(bytes=size, sha256=digest.hexdigest())


def _guidelines(session: Session, project: int) -> tuple[ReleasedGuideline, ...]:
    rows = session.scalars(
        select(StoredGuideline).where(StoredGuideline.project_id == project).order_by(StoredGuideline.id)
    )
    return tuple(
        ReleasedGuideline(
            id=row.id,
            category=row.category,
            language=row.language,
            version=row.version,
            sha256=hashlib.sha256(row.text.encode()).hexdigest(),
        )
        for row in rows
    )


def _store(
    session: Session, project: int, content: _Content, manifest: ReleaseManifest, *, by: int | None, at: float
) -> StoredRelease:
    # Another person may have taken the name while this one was read, or be about to.
    row = session.get_one(StoredProject, project, with_for_update={"key_share": True})
    _check_free(session, row, manifest.release)
    text = msgspec.json.format(msgspec.json.encode(manifest, order="sorted"), indent=2) + b"\n"
    release = StoredRelease(
        project_id=project,
        name=manifest.release,
        person_id=by,
        at=at,
        sha256=hashlib.sha256(text).hexdigest(),
        manifest=msgspec.to_builtins(manifest),
    )
    session.add(release)
    session.flush()
    for path, parts in {**content.parts, MANIFEST_FILE: [zlib.compress(text)]}.items():
        session.add_all(
            StoredReleasePart(release_id=release.id, path=path, number=number, content=part)
            for number, part in enumerate(parts)
        )
    detail = {"release": manifest.release, "sha256": release.sha256, "items": manifest.items}
    record(session, AuditEvent("released", "project", project, by, detail), at=at)
    session.flush()
    return release
