"""The verb `languages`: one evaluation of parallel items, told by language, family, script and resource."""

import tomllib
from collections import Counter
from collections.abc import Sequence, Set
from importlib.resources import files
from itertools import combinations
from pathlib import Path
from typing import NamedTuple

import msgspec
import numpy as np

from steelyard.core.config import Config as BaseConfig
from steelyard.core.config import Positive
from steelyard.core.errors import EvidenceError, FileError, choices
from steelyard.core.plugins import build
from steelyard.core.types import Counts, Run
from steelyard.evaluation.items import Item, read_items
from steelyard.evaluation.languages import Kin, Parallel, languages_report
from steelyard.evaluation.measures.coverage import are_read_alike
from steelyard.io.progress import log
from steelyard.io.run_folder import read_run, result_folder
from steelyard.statistics.groups import Label


class Config(BaseConfig, frozen=True):
    """``english`` is the language that the others are compared with; null takes the one that is English.

    ``languages`` are those compared, English among them; null takes all. Numbers are over the items that all of them
    have, so that leaving one out that has few items brings back the items of the others.
    """

    english: str | None = None
    """The language that others are compared with; none takes the one that is English."""
    languages: tuple[str, ...] | None = None
    """The languages that are compared; none takes all. Numbers are over items that all of them have."""
    num_resamples: Positive = 1000
    """The number of bootstrap resamples of items."""
    seed: int = 0
    """The seed of the resamples."""


_DEFAULT = Config()


class _Language(msgspec.Struct, frozen=True, forbid_unknown_fields=True):
    codes: tuple[str, ...]
    script: str
    family: str
    resource: str | None = None
    resource_class: int | None = None
    column: str | None = None


def languages(evaluated: Path, out: Path, config: Config = _DEFAULT, *, force: bool = False) -> Run:
    """Compare an evaluation's languages on the items that all of them have, by the arithmetic of the bench.

    Raises EvidenceError where there is one language alone, no English, or no item that all have.
    """
    run = read_run(evaluated)
    if run.stage != "evaluate":
        raise FileError(f"a run of {run.stage}", where=str(evaluated), allowed="the --out folder of `evaluate`")
    inputs = {"run": evaluated / "run.json", "items": evaluated / "items.jsonl"}
    with result_folder(out, "languages", config=config, inputs=inputs, seed=config.seed, force=force) as result:
        if result.is_finished:
            log(f"{out} is finished already: equal inputs and settings")
            return read_run(out)
        items = list(read_items(evaluated))
        known = _known()
        present = {one.language for one in items if one.language is not None}
        compared = _compared(present, config.languages, where=str(evaluated))
        english = _english(compared, config.english, known, where=str(evaluated))
        shared = share_items(items, compared, where=str(evaluated))
        bench = build("benches", run.config["bench_kind"], run.config["bench"])
        report = languages_report(
            _parallel(shared.items),
            bench.breakdown,
            english,
            {code: kin for code, (_, kin) in known.items()},
            num_resamples=config.num_resamples,
            seed=config.seed,
        )
        result.counts = Counts(num_in=len(items), num_used=len(shared.items), dropped=shared.dropped)
        coverage = run.summary.get("coverage")
        result.summary = {
            "model": run.summary["model"],
            "bench": run.summary["bench"],
            "num_shared": len(shared.items) // len(compared),
            "left_out": shared.left_out,
            **report,
            "coverage": coverage,
            "are_read_alike": coverage is None or are_read_alike(coverage, compared),
        }
    return read_run(out)


class Shared(NamedTuple):
    """The items that all compared languages have; ``left_out``: of each language how many others do not all have."""

    items: list[Item]
    left_out: dict[str, int]
    dropped: dict[str, int]


def share_items(items: Sequence[Item], languages: Set[str], *, where: str) -> Shared:
    """The counted items whose prompt has a counted item in every language. Raises EvidenceError where none has."""
    dropped = Counter[str]()
    usable: list[Item] = []
    for one in items:
        if one.exact_match is None:
            dropped["no comparable pair, or no score"] += 1
        elif one.language is None:
            dropped["no language"] += 1
        elif one.language not in languages:
            dropped["language not compared"] += 1
        else:
            usable.append(one)
    number = Counter(one.prompt for one in usable)
    shared = [one for one in usable if number[one.prompt] == len(languages)]
    if not shared:
        counts = ", ".join(f"{name} {n:,}" for name, n in sorted(Counter(one.language for one in usable).items()))
        raise EvidenceError(
            f"no item is in all of {len(languages)} languages ({counts} items)", where=where, do=_sharing(usable)
        )
    left_out = Counter(one.language for one in usable if number[one.prompt] < len(languages))
    if left_out:
        dropped["not in every language"] = left_out.total()
    return Shared(shared, {str(name): n for name, n in sorted(left_out.items())}, dict(dropped))


def _sharing(items: Sequence[Item]) -> str:
    """What to do where no item is in every language: name the two languages that share most."""
    languages_of: dict[str, set[str]] = {}
    for one in items:
        languages_of.setdefault(one.prompt, set()).add(str(one.language))
    shared = Counter(pair for own in languages_of.values() for pair in combinations(sorted(own), 2))
    if not shared:
        return "evaluate parallel items, which have one prompt id in all languages"
    (one, other), _ = max(shared.items(), key=lambda item: (item[1], item[0]))
    return f"""compare languages that share items: --set 'languages=["{one}","{other}"]'"""


def _known() -> dict[str, tuple[str, Kin]]:
    """Every code, with the language's name and kin."""
    table = tomllib.loads(files("steelyard").joinpath("data/languages.toml").read_text("utf-8"))
    found: dict[str, tuple[str, Kin]] = {}
    for name, row in table.items():
        own = msgspec.convert(row, _Language)
        kin = Kin(own.family, own.script, own.resource, own.resource_class, own.column)
        found |= dict.fromkeys(own.codes, (name, kin))
    return found


def _compared(present: set[str], asked: tuple[str, ...] | None, *, where: str) -> set[str]:
    """The languages to compare. Raises EvidenceError for one that no item has, or fewer than two."""
    for name in asked or ():
        if name not in present:
            raise EvidenceError(f"no item is in {name!r}", where=where, allowed=choices(name, present))
    compared = present if asked is None else set(asked)
    if len(compared) < 2:
        found = f"one language alone ({', '.join(compared)})" if compared else "no item has a language"
        raise EvidenceError(found, where=where, do="evaluate parallel items in several languages")
    return compared


def _english(compared: set[str], asked: str | None, known: dict[str, tuple[str, Kin]], *, where: str) -> str:
    if asked is not None:
        if asked not in compared:
            raise EvidenceError(f"no item is in {asked!r}", where=where, allowed=choices(asked, compared))
        return asked
    named = sorted(code for code in compared if known.get(code, ("", Kin()))[0] == "english")
    if len(named) != 1:
        found = f"{len(named)} languages are English" if named else "none of the languages is English"
        raise EvidenceError(found, where=where, allowed=", ".join(sorted(compared)), do="say --set english=CODE")
    return named[0]


def _parallel(items: Sequence[Item]) -> Parallel:
    rows = [(one.num_pairs, one.num_correct, 1, bool(one.exact_match), *one.own) for one in items]
    return Parallel(
        [one.prompt for one in items],
        [Label(one.unit or one.prompt, one.cell) for one in items],
        np.array(rows, dtype=np.int64),
        np.array([one.num_tied for one in items]),
    )
