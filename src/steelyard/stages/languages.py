"""The verb `languages`: an evaluation of parallel items by language, family, script and resource level."""

import tomllib
from collections import Counter
from collections.abc import Mapping, Sequence, Set
from importlib.resources import files
from itertools import combinations
from pathlib import Path
from typing import NamedTuple

import msgspec

from steelyard.core.config import Config as BaseConfig
from steelyard.core.config import Positive
from steelyard.core.errors import EvidenceError, choices
from steelyard.core.languages import language_key
from steelyard.core.remedies import CODE, Advice, Remedy
from steelyard.core.text import common_spellings, number_of, verb_for
from steelyard.core.types import Counts, Run
from steelyard.evaluation.evaluations import bench_of, read_evaluation
from steelyard.evaluation.items import Item, read_items
from steelyard.evaluation.languages import Kin, LanguagesSummary, ParallelEvaluation, compare_languages
from steelyard.io.run_folder import Result, run_stage
from steelyard.io.verbs import Argument, Option, RunFolder, SettingOption, Verb


class Config(BaseConfig, frozen=True):
    """``baseline_language`` is the language that the others are compared with; null selects English.

    ``languages`` are the compared languages including English; null selects all. Values are over the items that all of
    them have, so excluding a language with few items restores items of the others.
    """

    baseline_language: str | None = None
    """The language that others are compared with. Default: English."""
    languages: tuple[str, ...] | None = None
    """The languages that are compared, over items that all of them have. Default: all languages."""
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


VERB = Verb(
    "Comparisons and reports",
    61,
    (
        Argument("evaluated", "The folder of an evaluation of parallel items."),
        Option("out", "The folder for the result, run.json."),
        SettingOption("baseline_language"),
        SettingOption("languages", note="Repeat."),
    ),
)


def languages(
    evaluated: RunFolder, out: Path, config: Config = _DEFAULT, *, force: bool = False
) -> Run[LanguagesSummary]:
    """Break one evaluation down by language: the drop from English, agreement with it, families, scripts, resources.

    All numbers follow the bench's own sections and weights, on the items that all compared languages have. Kappa
    measures how far the model prefers the same answers in a language as in English. Translations of one item are
    resampled together.

    Example: `steelyard languages evaluated --out languages`

    Raises EvidenceError for a single language, for no English, or for no shared item.

    >>> by_language = sy.languages(sy.evaluate("longer", cases), num_resamples=200)
    >>> [row["language"] for row in by_language.table]
    ['en', 'zh']
    """
    run = read_evaluation(evaluated)
    inputs = {"run": evaluated / "run.json", "items": evaluated / "items.jsonl"}

    def write(result: Result) -> None:
        read = list(read_items(evaluated))
        items = _with_common_languages(read)
        present = {item.language for item in items if item.language is not None}
        known = _known_languages(present)
        compared = _compared(present, config.languages, where=str(evaluated))
        english = _english(compared, config.baseline_language, known, where=str(evaluated))
        shared = share_items(items, compared, where=str(evaluated))
        result.summary = compare_languages(
            ParallelEvaluation(
                run.summary.model,
                run.summary.bench,
                shared.items,
                shared.left_out,
                run.summary.coverage,
            ),
            bench_of(run, evaluated).breakdown,
            english,
            {code: kin for code, (_, kin) in known.items()},
            num_resamples=config.num_resamples,
            seed=config.seed,
        )
        repeated = {"in one language twice": len(read) - len(items)} if len(items) < len(read) else {}
        result.counts = Counts(num_in=len(read), num_used=len(shared.items), dropped=shared.dropped | repeated)

    return run_stage(out, "languages", Run[LanguagesSummary], write, config=config, inputs=inputs, force=force)


def _with_common_languages(items: list[Item]) -> list[Item]:
    """Return the items with one spelling of each language, and the first of a prompt's items in a language."""
    spelling = common_spellings((item.language for item in items if item.language is not None), language_key)
    by_key = {(item.prompt, spelling.get(item.language or "")): item for item in reversed(items)}
    return [msgspec.structs.replace(item, language=language) for (_, language), item in reversed(by_key.items())]


class SharedItems(NamedTuple):
    """The items that all compared languages have.

    ``left_out`` counts, by language, the items that not every language has; ``dropped`` counts all others by reason.
    """

    items: list[Item]
    left_out: dict[str, int]
    dropped: dict[str, int]


def share_items(items: Sequence[Item], languages: Set[str], *, where: str) -> SharedItems:
    """Return the counted items whose prompt has a counted item in every language. Raises EvidenceError for none."""
    dropped = Counter[str]()
    usable: list[Item] = []
    for item in items:
        if item.exact_match is None:
            dropped["no comparable pair, or no score"] += 1
        elif item.language is None:
            dropped["no language"] += 1
        elif item.language not in languages:
            dropped["language not compared"] += 1
        else:
            usable.append(item)
    number = Counter(item.prompt for item in usable)
    shared = [item for item in usable if number[item.prompt] == len(languages)]
    if not shared:
        counts = ", ".join(f"{name} {n:,}" for name, n in sorted(Counter(item.language for item in usable).items()))
        raise EvidenceError(
            f"no item is in all of {number_of(len(languages), 'language')} ({counts} items)",
            where=where,
            do=_remedy(usable),
        )
    left_out = Counter(item.language for item in usable if number[item.prompt] < len(languages))
    if left_out:
        dropped["not in every language"] = left_out.total()
    return SharedItems(shared, {str(name): n for name, n in sorted(left_out.items())}, dict(dropped))


def _remedy(items: Sequence[Item]) -> str:
    """Return the remedy if no item is in every language: compare the two languages that share the most items."""
    languages_of: dict[str, set[str]] = {}
    for item in items:
        languages_of.setdefault(item.prompt, set()).add(str(item.language))
    shared = Counter(pair for names in languages_of.values() for pair in combinations(sorted(names), 2))
    if not shared:
        return "evaluate parallel items, which have one prompt id in all languages"
    (first, second), _ = max(shared.items(), key=lambda item: (item[1], item[0]))
    return Advice("compare languages that share items: ", Remedy("languages", [first, second]))


def _known_languages(codes: Set[str]) -> dict[str, tuple[str, Kin]]:
    """Return the codes that name a language of the table, with its name and groups."""
    table = tomllib.loads(files("steelyard").joinpath("data/languages.toml").read_text("utf-8"))
    listed: dict[str, tuple[str, Kin]] = {}
    by_identity: dict[str, tuple[str, Kin]] = {}
    for name, row in table.items():
        language = msgspec.convert(row, _Language)
        kin = Kin(language.family, language.script, language.resource, language.resource_class, language.column)
        listed |= dict.fromkeys(language.codes, (name, kin))
        by_identity.setdefault(language_key(language.codes[0]), (name, kin))
    # A code of the table may say the script of a language, as its identity does not where the script is the usual one.
    known = {code: listed.get(code) or by_identity.get(language_key(code)) for code in codes}
    return {code: row for code, row in known.items() if row is not None}


def _compared(present: Set[str], chosen: tuple[str, ...] | None, *, where: str) -> set[str]:
    """Return the languages to compare. Raises EvidenceError for one that no item has, or fewer than two."""
    compared = {*present} if chosen is None else {_find_language(name, present, where=where) for name in chosen}
    if len(compared) < 2:
        problem = f"the only language is {', '.join(compared)}" if compared else "no item has a language"
        raise EvidenceError(problem, where=where, do="evaluate parallel items in several languages")
    return compared


def _find_language(name: str, present: Set[str], *, where: str) -> str:
    """Return the language of that identity as the items spell it. Raises EvidenceError if none has it."""
    language = next((each for each in present if language_key(each) == language_key(name)), None)
    if language is None:
        raise EvidenceError(f"no item is in {name!r}", where=where, allowed=choices(name, present))
    return language


def _english(compared: Set[str], chosen: str | None, known: Mapping[str, tuple[str, Kin]], *, where: str) -> str:
    if chosen is not None:
        return _find_language(chosen, compared, where=where)
    english = sorted(code for code in compared if known.get(code, ("", Kin()))[0] == "english")
    if len(english) != 1:
        problem = (
            f"{number_of(len(english), 'language')} {verb_for(len(english), 'is', 'are')} English"
            if english
            else "none of the languages is English"
        )
        raise EvidenceError(
            problem,
            where=where,
            allowed=", ".join(sorted(compared)),
            do=Advice("name it: ", Remedy("baseline_language", CODE)),
        )
    return english[0]
