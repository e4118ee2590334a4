"""The texts of a bench that a recipe releases: its settings as a benchmark, cards, statistics and manifest."""

import tomllib
from collections.abc import Iterator, Mapping
from functools import cache
from importlib.metadata import version
from pathlib import Path
from typing import NamedTuple

import msgspec
from msgspec.structs import replace

from steelyard.core.errors import EvidenceError
from steelyard.core.types import JsonObject
from steelyard.evaluation.benches import BENCH_FILE
from steelyard.io.atomic import write_text
from steelyard.io.cases import read_cases, write_cases
from steelyard.io.hashing import file_hash
from steelyard.report.text_tables import TextTable, escape_markdown, markdown_table
from steelyard.workbench.results.paper_figures import PaperFigures
from steelyard.workbench.results.paper_pages import CARDS, methods_paragraph, release_card
from steelyard.workbench.results.release_bench import ReleaseCounts, state_label_error

CASES = "cases.jsonl"
PUBLIC, HIDDEN, DATASETS = "bench", "hidden", "datasets"
_COLUMNS = ("prompts", "responses", "pairs", "judgments")


class ReleasedPart(NamedTuple):
    """A part of the release: the hash of its case file, and its counts."""

    name: str
    sha256: str
    counts: ReleaseCounts

    @property
    def evidence(self) -> str:
        """Return which judgments the cases have; those that people aligned where the cases do not say."""
        return ", ".join(sorted(self.counts.evidence)) or "aligned"


class BenchRelease(NamedTuple):
    """Facts that all parts share: the name, the canary, how people annotated, the parts, and the time."""

    name: str
    version: str
    licence: str | None
    canary: str
    figures: PaperFigures
    parts: Mapping[str, ReleasedPart]
    at: str

    @property
    def is_simulated(self) -> bool:
        """Return whether a program answered as people."""
        return self.figures.is_simulated or any(part.counts.is_simulated for part in self.parts.values())


def write_texts(folder: Path, part: ReleasedPart, made: BenchRelease, *, where: str) -> None:
    """Write the settings as a benchmark, the cards, the figures and the manifest of a part."""
    version_name = made.version if part.name == PUBLIC else f"{made.version} {part.name}"
    listed = {CASES: part.sha256}
    label_error = state_label_error(read_cases(folder / CASES), listed)
    table = part.counts.bench_file(name=made.name, release=version_name, files=listed, label_error=label_error)
    if table is None:
        problem = f"no case of the part {part.name!r} orders two responses"
        raise EvidenceError(problem, where=where, do="resolve the judgments first, or take more cases")
    mark = f"# {made.canary}\n" if made.canary else ""
    write_text(folder / BENCH_FILE, mark + table)
    write_text(
        folder / "figures.json", msgspec.json.format(msgspec.json.encode(made.figures), indent=2).decode() + "\n"
    )
    for file, language in CARDS.items():
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
        "licence": made.licence,
        "evidence": part.evidence,
        "settings": msgspec.to_builtins(made.figures.settings),
        "guidelines": msgspec.to_builtins(made.figures.guidelines),
        "counts": dict(part.counts.numbers),
        "prompts_by_category": dict(sorted(part.counts.categories.items())),
        "prompts_by_language": dict(sorted(part.counts.languages.items())),
        "files": files,
    }
    write_text(folder / "manifest.json", msgspec.json.format(msgspec.json.encode(manifest), indent=2).decode() + "\n")


def _card(part: ReleasedPart, made: BenchRelease, language: str) -> str:
    """Return the card of a part as a benchmark: its contents and use, how people annotated, and the statistics."""
    facts = part.counts.facts(release=made.version, at=made.at, evidence=part.evidence, sha256=part.sha256)
    figures = replace(made.figures, project=made.name)
    card = release_card(figures, facts, part.counts.languages, language, is_bench=True)
    head, _, rest = card.partition("\n\n")
    words = _words(language)
    marks = [words["simulated"]] if made.is_simulated else []
    marks += [words["hidden_part"]] if part.name == HIDDEN else []
    return "\n\n".join([head, *marks, rest.rstrip("\n"), *_statistics(part, made, language)]) + "\n"


def _statistics(part: ReleasedPart, made: BenchRelease, language: str) -> Iterator[str]:
    """Yield the paragraphs on the size of a part, the hidden part, the canary and the licence."""
    words = _words(language)
    counts = ", ".join(
        f"{escape_markdown(name) or words['uncategorised']} {number:,}"
        for name, number in part.counts.categories.most_common()
    )
    rows = (part.name, *(f"{part.counts.numbers[column]:,}" for column in _COLUMNS))
    heads = tuple(words[key] for key in ("part", *_COLUMNS))
    yield f"## {words['statistics']}"
    yield markdown_table(TextTable("statistics", f"{made.name} {made.version}", heads, (rows,))).strip()
    yield words["categories"].format(counts=counts)
    if part.name == PUBLIC and HIDDEN in made.parts:
        yield words["hidden"].format(number=f"{made.parts[HIDDEN].counts.numbers['prompts']:,}")
    if made.canary:
        yield words["canary"]
        yield f"```\n{made.canary}\n```"
    if made.licence:
        yield words["licence"].format(licence=escape_markdown(made.licence))


def write_datasets(folder: Path, bench: Path, made: BenchRelease) -> None:
    """Write the published part for the library ``datasets``: one Parquet file, and a card that names it."""
    write_cases(folder / "data" / "test.parquet", read_cases(bench / CASES))
    title = f"{made.name} {made.version}"
    head: JsonObject = {
        "pretty_name": title,
        "configs": [{"config_name": "default", "data_files": [{"split": "test", "path": "data/test.parquet"}]}],
    }
    # JSON is YAML, and no name can break it.
    lines = [f"{key}: {msgspec.json.encode(value).decode()}" for key, value in head.items()]
    for file, language in CARDS.items():
        words = _words(language)
        marks = [words["simulated"]] if made.is_simulated else []
        paragraph = escape_markdown(methods_paragraph(made.figures, language))
        parts = [f"# {escape_markdown(title)}", *marks, words["datasets"], paragraph]
        text = "\n\n".join([*parts, *_statistics(made.parts[PUBLIC], made, language)]) + "\n"
        write_text(folder / file, "\n".join(["---", *lines, "---", "", text]) if file == "README.md" else text)


@cache
def _words(language: str) -> Mapping[str, str]:
    table = tomllib.loads(Path(__file__).with_name("release_card.toml").read_text(encoding="utf-8"))
    return {key: entry[language] for key, entry in table.items()}
