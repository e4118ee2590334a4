"""The verb `split`: a case file into parts by prompt, so that no prompt is trained on and tested on."""

from collections.abc import Sequence
from contextlib import ExitStack
from pathlib import Path
from typing import Literal

import msgspec

from steelyard.core.config import Config as BaseConfig
from steelyard.core.errors import ConfigError, EvidenceError
from steelyard.core.names import name_key
from steelyard.core.remedies import Advice, Remedy
from steelyard.core.text import number_of, verb_for
from steelyard.core.types import Case, Counts, Run
from steelyard.curation.splits import (
    STRATA,
    RelatedCases,
    SplitSummary,
    Stratum,
    group_related,
    split_cases,
    summarize_split,
)
from steelyard.io.atomic import atomic_write
from steelyard.io.cases import encode_case, read_cases
from steelyard.io.run_folder import Result, run_stage
from steelyard.io.verbs import CASES, CaseFile, Option, SettingOption, Verb


class Config(BaseConfig, frozen=True):
    """Settings of a split. The file of a part is ``NAME.jsonl``."""

    parts: dict[str, float] = msgspec.field(default_factory=lambda: {"train": 0.8, "test": 0.2})
    """The share of each part by its name; the shares sum to 1."""
    near_duplicates: float | Literal["off"] = 0.8
    """The similarity of prompts (Jaccard, of character shingles) from which they stay together."""
    strata: tuple[Stratum, ...] = STRATA
    """Groups that every part shares equally."""
    seed: int = 0
    """The seed of the split."""


_DEFAULT = Config()


VERB = Verb(
    "Data",
    22,
    (
        CASES,
        Option("out", "The folder for the parts."),
        SettingOption("parts", "part", note="As NAME=SHARE; repeat."),
        SettingOption("near_duplicates"),
        SettingOption("strata", "stratify", note="Repeat."),
        SettingOption("seed"),
    ),
)


def split(cases: CaseFile, out: Path, config: Config = _DEFAULT, *, force: bool = False) -> Run[SplitSummary]:
    """Split a case file by prompt: what belongs together stays in one part.

    Branches of one conversation, one item in several languages and near-duplicate prompts are never divided; every part
    gets its share of each category, source and language. ``parts`` are shares that sum to 1.

    Near-duplicates share at least 0.8 of their short runs of characters, in their first user turns or in their whole
    conversations without system prompts, in any language. ``near_duplicates="off"`` joins equal first turns only.

    Example: `steelyard split cases.jsonl --out parts --part train=0.7 --part held_out=0.1 --part test=0.2`

    Example: `steelyard split cases.jsonl --out parts --near-duplicates 0.6 --stratify language --stratify source`

    Raises ConfigError for other shares, EvidenceError for a part that would be empty.

    >>> parts = sy.split(cases, parts={"train": 0.75, "test": 0.25})
    >>> len(parts["train"]) + len(parts["test"])
    40
    """
    _check_parts(config.parts)
    near = None if config.near_duplicates == "off" else config.near_duplicates
    if near is not None and not 0 < near <= 1:
        raise ConfigError(f"near_duplicates is {near}", where="split", allowed="above 0 and at most 1, or off")

    def write(result: Result) -> None:
        # The prompts of a large file fit into memory where its answers and judgments do not.
        prompts = [Case(prompt=case.prompt, responses=()) for case in read_cases(cases)]
        related = group_related(prompts, near)
        chosen = split_cases(prompts, config.parts, seed=config.seed, related=related, strata=config.strata)
        sizes = {name: chosen.count(name) for name in config.parts}
        empty = [name for name, size in sizes.items() if size == 0]
        if empty:
            raise _empty_parts(empty, prompts, related, cases)
        with ExitStack() as stack:  # all files take their names together at the end
            files = {name: stack.enter_context(atomic_write(result.path(f"{name}.jsonl"))) for name in config.parts}
            for case, part in zip(read_cases(cases), chosen, strict=True):
                files[part].write(encode_case(case))
        result.counts = Counts(num_in=len(prompts), num_used=len(prompts))
        result.summary = summarize_split(prompts, chosen, config.parts, related)

    return run_stage(out, "split", Run[SplitSummary], write, config=config, inputs={"cases": cases}, force=force)


def _empty_parts(empty: Sequence[str], prompts: Sequence[Case], related: RelatedCases, cases: Path) -> EvidenceError:
    number, groups = number_of(len(prompts), "case"), number_of(len(related.groups), "group")
    verb = verb_for(len(prompts), "leaves", "leave")
    problem = f"{number} in {groups} of prompts that stay together {verb} nothing for {', '.join(empty)}"
    do: Advice | str = "name fewer parts, or add prompts that differ"
    if related.num_near_duplicates:
        joined = number_of(related.num_near_duplicates, "group")
        do = Advice(
            f"near-duplicates joined {joined} to others: say a higher ",
            Remedy("near_duplicates"),
            ", or, to let near-duplicates fall on both sides, ",
            Remedy("near_duplicates", "off"),
        )
    return EvidenceError(problem, where=str(cases), do=do)


def _check_parts(parts: dict[str, float]) -> None:
    if not all(share > 0 for share in parts.values()) or abs(sum(parts.values()) - 1) > 1e-9:
        raise ConfigError(f"shares {parts}", where="split.parts", allowed="shares above 0 that sum to 1")
    files: dict[str, str] = {}
    for name in parts:
        if not name.isidentifier():
            raise ConfigError(f"part {name!r}", where="split.parts", allowed="a plain word: it becomes a file name")
        # Windows and macOS keep one file for names that differ in case or Unicode form alone.
        first = files.setdefault(name_key(name), name)
        if first != name:
            problem = f"parts {first!r} and {name!r} differ in case or Unicode form alone"
            raise ConfigError(problem, where="split.parts", do="give each part another name: it becomes a file name")
