"""The stage `release` of a recipe: resolved cases as a bench to publish, with a card, statistics and a canary.

``bench`` is the published part, which `evaluate` reads, ``hidden`` the part that stays with its makers, and
``datasets`` the published part for the library of that name. A canary is a text that only these files have: they can be
left out of training data by it, and a model that completes it has been trained on them.
"""

import hashlib
from collections.abc import Sequence
from datetime import UTC, datetime
from pathlib import Path
from uuid import UUID

import msgspec
from msgspec.structs import replace

from steelyard.annotation.people_runs import ReleaseSummary
from steelyard.core.config import Config as BaseConfig
from steelyard.core.errors import ConfigError, EvidenceError, FileError
from steelyard.core.names import NAME_RULE, is_name
from steelyard.core.text import number_of
from steelyard.core.types import Case, Counts, Run
from steelyard.curation.splits import STRATA, Stratum, group_related, split_cases
from steelyard.io.cases import read_cases, write_cases
from steelyard.io.hashing import file_hash
from steelyard.io.lines import check_readable, check_text, read_whole
from steelyard.io.run_folder import Result, run_stage
from steelyard.workbench.results.paper_figures import PaperFigures
from steelyard.workbench.results.release_bench import ReleaseCounts
from steelyard.workbench.results.release_texts import (
    CASES,
    DATASETS,
    HIDDEN,
    PUBLIC,
    BenchRelease,
    ReleasedPart,
    write_datasets,
    write_texts,
)


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
    """Groups that the hidden part shares equally; [] for small benches, whose groups have too few prompts to share."""
    canary: bool = True
    """Give every line a text by which the data are found in training data."""
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
        shares = {PUBLIC: 1 - config.hidden_share, HIDDEN: config.hidden_share}
        if config.hidden_share:
            related = group_related(prompts, config.near_duplicates)
            chosen: Sequence[str] = split_cases(
                prompts, shares, seed=config.seed, related=related, strata=config.strata
            )
        else:
            chosen = [PUBLIC] * len(prompts)
        names = [name for name, share in shares.items() if share > 0]
        if empty := [name for name in names if name not in chosen]:
            problem = f"{number_of(len(prompts), 'case')} with nothing for the part {empty[0]!r}"
            do = "change hidden_share of this stage, or share out fewer groups: strata = []"
            raise EvidenceError(problem, where=str(cases), do=do)
        name = config.name or how.project
        canary = _canary(name, config, file_hash(cases))
        parts = {part: _write_part(result, part, cases, chosen, canary) for part in names}
        at = f"{datetime.now(UTC):%Y-%m-%dT%H:%M:%SZ}"
        made = BenchRelease(name, config.version, config.licence, canary, how, parts, at)
        for part in parts.values():
            write_texts(result.path(part.name), part, made, where=str(cases))
        write_datasets(result.path(DATASETS), result.path(PUBLIC), made)
        result.counts = Counts(num_in=len(prompts), num_used=len(prompts))
        result.summary = ReleaseSummary(
            name=name,
            version=config.version,
            is_simulated=made.is_simulated,
            canary=canary,
            prompts={part.name: part.counts.numbers["prompts"] for part in parts.values()},
            responses={part.name: part.counts.numbers["responses"] for part in parts.values()},
            ordered_pairs={part.name: part.counts.numbers["pairs"] for part in parts.values()},
            judgments={part.name: part.counts.numbers["judgments"] for part in parts.values()},
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


def _write_part(result: Result, name: str, cases: Path, chosen: Sequence[str], canary: str) -> ReleasedPart:
    """Write the cases of a part, each with the canary in its ``meta``, and count them."""
    counts = ReleaseCounts()
    of_part = (case for case, part in zip(read_cases(cases), chosen, strict=True) if part == name)
    marked = (
        replace(case, meta={**case.meta, "canary": canary}) if canary else case for case in counts.counted(of_part)
    )
    file = result.path(name) / CASES
    write_cases(file, marked)
    return ReleasedPart(name, file_hash(file), counts)
