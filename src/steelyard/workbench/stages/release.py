"""The stage `release` of a recipe: resolved cases as a bench to publish, with a card, statistics and a canary.

``bench`` is the published part, which `evaluate` reads, ``hidden`` the part that stays with its makers, and
``datasets`` the published part for the library of that name. A canary is a text that only these files have: they can be
left out of training data by it, and a model that completes it has been trained on them.
"""

import hashlib
import tomllib
from collections import Counter
from collections.abc import Iterator, Mapping, Sequence
from datetime import UTC, datetime
from functools import cache
from importlib.metadata import version
from pathlib import Path
from typing import NamedTuple
from uuid import UUID

import msgspec
from msgspec.structs import replace

from steelyard.annotation.people_runs import ReleaseSummary
from steelyard.core.config import Config as BaseConfig
from steelyard.core.errors import ConfigError, EvidenceError, FileError
from steelyard.core.names import NAME_RULE, is_name
from steelyard.core.text import number_of
from steelyard.core.types import Case, Counts, JsonObject, Run
from steelyard.curation.splits import STRATA, Stratum, group_related, split_cases
from steelyard.evaluation.benches import BENCH_FILE
from steelyard.io.atomic import write_text
from steelyard.io.cases import read_cases, write_cases
from steelyard.io.hashing import file_hash
from steelyard.io.lines import check_readable, check_text, read_whole
from steelyard.io.run_folder import Result, run_stage
from steelyard.ranking.pairs import pairs_of
from steelyard.report.items import is_simulated
from steelyard.report.text_tables import TextTable, escape_markdown, markdown_table
from steelyard.workbench.results.paper_figures import PaperFigures
from steelyard.workbench.results.paper_pages import methods_paragraph, release_card
from steelyard.workbench.results.release_bench import BenchCounts, state_label_error

_CASES = "cases.jsonl"
_CARDS = {"README.md": "en", "README.zh.md": "zh"}
_PUBLIC, _HIDDEN, _DATASETS = "bench", "hidden", "datasets"
_COLUMNS = ("prompts", "responses", "pairs", "judgments")


class Config(BaseConfig, frozen=True):
    """Settings of a released bench."""

    name: str | None = None
    """The name of the bench. Default: that of the project."""
    version: str = "1.0"
    """The version of the release."""
    hidden_share: float = 0.0
    """The share of prompts that is not published."""
    near_duplicates: float = 0.8
    """The similarity of prompts (Jaccard, of character shingles) from which they stay in one part."""
    strata: tuple[Stratum, ...] = STRATA
    """What the hidden part has an equal share of; [] for small benches, whose groups have too few prompts to share."""
    canary: bool = True
    """Whether every line has a text by which the data are found in training data."""
    licence: str | None = None
    """The licence, such as CC-BY-4.0, for the card."""
    seed: int = 0
    """The seed of the hidden part and of the canary."""

    def __post_init__(self) -> None:
        if not 0 <= self.hidden_share < 1:
            raise ConfigError(f"a share of {self.hidden_share}", where="hidden_share", allowed="0 to below 1")
        if not 0 < self.near_duplicates <= 1:
            where, allowed = "near_duplicates", "above 0 and at most 1"
            raise ConfigError(f"a similarity of {self.near_duplicates}", where=where, allowed=allowed)
        for key, text in (("name", self.name), ("version", self.version), ("licence", self.licence)):
            if text is not None and not is_name(text):
                raise ConfigError(f"{text[:50]!r} cannot stand in a card", where=key, allowed=NAME_RULE)


_DEFAULT = Config()


class _ReleasePart(NamedTuple):
    """A part of the release: its case file with the hash, its counts, and its settings as a benchmark."""

    name: str
    sha256: str
    counts: Counter[str]
    categories: Counter[str]
    languages: Counter[str]
    judges: frozenset[str]
    evidence: str
    is_simulated: bool
    bench: BenchCounts


class _Release(NamedTuple):
    """What all parts share: the name, the canary, how people annotated, the parts, and the time."""

    config: Config
    name: str
    canary: str
    figures: PaperFigures
    parts: Mapping[str, _ReleasePart]
    at: str

    @property
    def is_simulated(self) -> bool:
        return self.figures.is_simulated or any(part.is_simulated for part in self.parts.values())


def release(
    cases: Path, out: Path, config: Config = _DEFAULT, *, figures: Path, force: bool = False
) -> Run[ReleaseSummary]:
    """Release resolved cases as a bench; ``figures`` is ``paper/figures.json`` of `annotated`: how people annotated.

    Writes the folders ``bench``, ``datasets`` and, with ``hidden_share``, ``hidden``. Raises EvidenceError where no
    case orders two responses, and where a part would be empty.
    """
    check_readable(cases)
    how = _read_figures(figures)

    def write(result: Result) -> None:
        prompts = [Case(prompt=case.prompt, responses=()) for case in read_cases(cases)]
        shares = {_PUBLIC: 1 - config.hidden_share, _HIDDEN: config.hidden_share}
        if config.hidden_share:
            related = group_related(prompts, config.near_duplicates)
            chosen: Sequence[str] = split_cases(
                prompts, shares, seed=config.seed, related=related, strata=config.strata
            )
        else:
            chosen = [_PUBLIC] * len(prompts)
        names = [name for name, share in shares.items() if share > 0]
        if empty := [name for name in names if name not in chosen]:
            problem = f"{number_of(len(prompts), 'case')} with nothing for the part {empty[0]!r}"
            do = "change hidden_share of this stage, or share out fewer groups: strata = []"
            raise EvidenceError(problem, where=str(cases), do=do)
        name = config.name or how.project
        canary = _canary(name, config, file_hash(cases))
        parts = {part: _write_part(result, part, cases, chosen, canary) for part in names}
        at = f"{datetime.now(UTC):%Y-%m-%dT%H:%M:%SZ}"
        made = _Release(config, name, canary, how, parts, at)
        for part in parts.values():
            _write_texts(result.path(part.name), part, made, where=str(cases))
        _write_datasets(result.path(_DATASETS), result.path(_PUBLIC), made)
        result.counts = Counts(num_in=len(prompts), num_used=len(prompts))
        result.summary = ReleaseSummary(
            name=name,
            version=config.version,
            is_simulated=made.is_simulated,
            canary=canary,
            prompts={part.name: part.counts["prompts"] for part in parts.values()},
            responses={part.name: part.counts["responses"] for part in parts.values()},
            ordered_pairs={part.name: part.counts["pairs"] for part in parts.values()},
            judgments={part.name: part.counts["judgments"] for part in parts.values()},
        )

    inputs = {"cases": cases, "figures": figures}
    return run_stage(out, "release", Run[ReleaseSummary], write, config=config, inputs=inputs, force=force)


def _read_figures(path: Path) -> PaperFigures:
    check_text(path)
    try:
        return msgspec.json.decode(read_whole(path), type=PaperFigures)
    except (msgspec.DecodeError, UnicodeDecodeError, RecursionError) as error:
        allowed = 'the paper/figures.json of a stage with verb = "annotated"'
        raise FileError(f"not the figures of a project ({error})", where=str(path), allowed=allowed) from error


def _canary(name: str, config: Config, sha256: str) -> str:
    """Return a text that these data alone have; empty where none is wanted."""
    if not config.canary:
        return ""
    digest = hashlib.sha256("\0".join([name, config.version, str(config.seed), sha256]).encode()).digest()
    return f"Test data: keep out of training corpora. Canary {UUID(bytes=digest[:16], version=4)}"


def _write_part(result: Result, name: str, cases: Path, chosen: Sequence[str], canary: str) -> _ReleasePart:
    """Write the cases of a part, each with the canary in its ``meta``, and count them."""
    counts, categories, languages, bench = Counter[str](), Counter[str](), Counter[str](), BenchCounts()
    judges: set[str] = set()
    evidence: set[str] = set()
    has_simulated = False

    def lines() -> Iterator[Case]:
        nonlocal has_simulated
        for case, part in zip(read_cases(cases), chosen, strict=True):
            if part != name:
                continue
            bench.add(case)
            counts.update(
                prompts=1,
                responses=len(case.responses),
                pairs=len(pairs_of(case)) if case.ranking is not None or case.pairs is not None else 0,
                judgments=len(case.judgments),
                ratings=len(case.ratings),
            )
            categories[case.prompt.category[0] if case.prompt.category else ""] += 1
            languages[case.prompt.language or ""] += 1
            judges.update(
                person
                for judgment in case.judgments
                if judgment.kind == "human"
                for person in (judgment.meta or {}).get("people") or [judgment.judge]
            )
            evidence.add(str(case.meta.get("evidence", "")))
            has_simulated = has_simulated or is_simulated(case)
            yield replace(case, meta={**case.meta, "canary": canary}) if canary else case

    file = result.path(name) / _CASES
    write_cases(file, lines())
    return _ReleasePart(
        name=name,
        sha256=file_hash(file),
        counts=counts,
        categories=categories,
        languages=languages,
        judges=frozenset(judges),
        evidence=", ".join(sorted(evidence - {""})) or "aligned",
        is_simulated=has_simulated,
        bench=bench,
    )


def _write_texts(folder: Path, part: _ReleasePart, made: _Release, *, where: str) -> None:
    """Write the settings as a benchmark, the cards, the figures and the manifest of a part."""
    version_name = made.config.version if part.name == _PUBLIC else f"{made.config.version} {part.name}"
    listed = {_CASES: part.sha256}
    label_error = state_label_error(read_cases(folder / _CASES), listed)
    table = part.bench.bench_file(name=made.name, version=version_name, files=listed, label_error=label_error)
    if table is None:
        problem = f"no case of the part {part.name!r} orders two responses"
        raise EvidenceError(problem, where=where, do="resolve the judgments first, or take more cases")
    mark = f"# {made.canary}\n" if made.canary else ""
    write_text(folder / BENCH_FILE, mark + table)
    write_text(
        folder / "figures.json", msgspec.json.format(msgspec.json.encode(made.figures), indent=2).decode() + "\n"
    )
    for file, language in _CARDS.items():
        write_text(folder / file, _card(part, made, language))
    files = {
        path.name: {"bytes": path.stat().st_size, "sha256": file_hash(path)}
        for path in sorted(folder.iterdir())
        if not path.name.startswith(".")
    }
    manifest: JsonObject = {
        "format": 1,
        "name": made.name,
        "release": version_name,
        "released_at": made.at,
        "software": f"steelyard {version('steelyard')}",
        "is_simulated": made.is_simulated,
        "canary": made.canary,
        "licence": made.config.licence,
        "evidence": part.evidence,
        "settings": msgspec.to_builtins(made.figures.settings),
        "guidelines": msgspec.to_builtins(made.figures.guidelines),
        "counts": dict(part.counts),
        "prompts_by_category": dict(sorted(part.categories.items())),
        "prompts_by_language": dict(sorted(part.languages.items())),
        "files": files,
    }
    write_text(folder / "manifest.json", msgspec.json.format(msgspec.json.encode(manifest), indent=2).decode() + "\n")


def _card(part: _ReleasePart, made: _Release, language: str) -> str:
    """Return the card of a part as a benchmark: its contents and use, how people annotated, and the statistics."""
    facts = {
        "release": made.config.version,
        "date": made.at,
        "software": f"steelyard {version('steelyard')}",
        "evidence": part.evidence,
        "items": f"{part.counts['prompts']:,}",
        "judgments": f"{part.counts['judgments']:,}",
        "ratings": f"{part.counts['ratings']:,}",
        "judges": f"{len(part.judges):,}",
        "sha256": part.sha256,
    }
    figures = replace(made.figures, project=made.name)
    card = release_card(figures, facts, dict(sorted(part.languages.items())), language, is_bench=True)
    head, _, rest = card.partition("\n\n")
    words = _words(language)
    marks = [words["simulated"]] if made.is_simulated else []
    marks += [words["hidden_part"]] if part.name == _HIDDEN else []
    return "\n\n".join([head, *marks, rest.rstrip("\n"), *_statistics(part, made, language)]) + "\n"


def _statistics(part: _ReleasePart, made: _Release, language: str) -> Iterator[str]:
    """Yield the paragraphs on the size of a part, the hidden part, the canary and the licence."""
    words = _words(language)
    counts = ", ".join(
        f"{escape_markdown(name) or words['uncategorised']} {number:,}"
        for name, number in part.categories.most_common()
    )
    rows = (part.name, *(f"{part.counts[column]:,}" for column in _COLUMNS))
    heads = tuple(words[key] for key in ("part", *_COLUMNS))
    yield f"## {words['statistics']}"
    yield markdown_table(TextTable("statistics", f"{made.name} {made.config.version}", heads, (rows,))).strip()
    yield words["categories"].format(counts=counts)
    if part.name == _PUBLIC and _HIDDEN in made.parts:
        yield words["hidden"].format(number=f"{made.parts[_HIDDEN].counts['prompts']:,}")
    if made.canary:
        yield words["canary"]
        yield f"```\n{made.canary}\n```"
    if made.config.licence:
        yield words["licence"].format(licence=escape_markdown(made.config.licence))


def _write_datasets(folder: Path, bench: Path, made: _Release) -> None:
    """Write the published part for the library ``datasets``: one Parquet file, and a card that names it."""
    write_cases(folder / "data" / "test.parquet", read_cases(bench / _CASES))
    title = f"{made.name} {made.config.version}"
    head: JsonObject = {
        "pretty_name": title,
        "configs": [{"config_name": "default", "data_files": [{"split": "test", "path": "data/test.parquet"}]}],
    }
    # JSON is YAML, and no name can break it.
    lines = [f"{key}: {msgspec.json.encode(value).decode()}" for key, value in head.items()]
    for file, language in _CARDS.items():
        words = _words(language)
        marks = [words["simulated"]] if made.is_simulated else []
        paragraph = escape_markdown(methods_paragraph(made.figures, language))
        parts = [f"# {escape_markdown(title)}", *marks, words["datasets"], paragraph]
        text = "\n\n".join([*parts, *_statistics(made.parts[_PUBLIC], made, language)]) + "\n"
        write_text(folder / file, "\n".join(["---", *lines, "---", "", text]) if file == "README.md" else text)


@cache
def _words(language: str) -> Mapping[str, str]:
    table = tomllib.loads(Path(__file__).with_name("release_card.toml").read_text(encoding="utf-8"))
    return {key: entry[language] for key, entry in table.items()}
