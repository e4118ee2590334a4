"""Evaluations of parallel items by several models: which items all of them have in all compared languages.

Every evaluation is read twice: here for its prompts by language, and later for the common items. One evaluation is in
memory at a time.
"""

from collections import Counter
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import NamedTuple

from steelyard.core.errors import EvidenceError
from steelyard.core.languages import language_key
from steelyard.core.remedies import Advice, Remedy
from steelyard.core.text import common_spellings, number_of
from steelyard.core.types import Run
from steelyard.evaluation.config import TRAINED_BASELINE
from steelyard.evaluation.evaluations import model_names
from steelyard.evaluation.items import Item, read_items
from steelyard.evaluation.language_groups import baseline_of, compared_languages
from steelyard.evaluation.language_table import Lacking
from steelyard.evaluation.summary import EvaluationSummary
from steelyard.plugins.models import baselines
from steelyard.plugins.reward_models import published_model

_Key = tuple[str, str]


class ParallelItem(Item, frozen=True, kw_only=True):
    """An item with the lengths of its responses, which tell its text from another one."""

    lengths: tuple[int, ...] = ()


class ParallelRun(NamedTuple):
    """One evaluation of the table: the name of its model there, its folder and its record."""

    name: str
    folder: Path
    run: Run[EvaluationSummary]

    @property
    def kind(self) -> str | None:
        """The kind of the model; null for a score file."""
        return kind_of_model(self.run)

    def items(self) -> dict[_Key, ParallelItem]:
        """Return the counted items by the identity of their language and their prompt, the first of equal keys."""
        by_key: dict[_Key, ParallelItem] = {}
        for item in read_items(self.folder, ParallelItem):
            if item.language is not None:
                by_key.setdefault((language_key(item.language), item.prompt), item)
        return {key: item for key, item in by_key.items() if item.exact_match is not None}


def kind_of_model(run: Run[EvaluationSummary]) -> str | None:
    """Return the kind of a model: that of the papers' tables, or what the run says of it; null for a score file."""
    summary, kind = run.summary, run.config.get("model_kind")
    if (published := published_model(summary.model)) is not None:
        return published.kind
    if summary.outcomes is not None:
        return "generative"
    if kind is None or kind == "implicit":
        return kind
    return "baseline" if kind in (*baselines.KINDS, TRAINED_BASELINE) else "classifier"


class RunSet(NamedTuple):
    """The evaluations of one translation, with its ``name`` where there are two.

    ``prompts`` are those of each run by the identity of the language, ``spellings`` counts the codes of languages, and
    ``known`` has an item of every key, with the folder that it was read from.
    """

    runs: tuple[ParallelRun, ...]
    prompts: tuple[dict[str, set[str]], ...]
    spellings: Counter[str]
    known: dict[_Key, tuple[Path, ParallelItem]]
    name: str = ""


class FoundRuns(NamedTuple):
    """The folders of the evaluations of one translation, and their records."""

    folders: Sequence[Path]
    records: Sequence[Run[EvaluationSummary]]


def read_sets(sources: Sequence[FoundRuns]) -> tuple[RunSet, ...]:
    """Read which items each evaluation of one translation or of two has.

    Raises EvidenceError where two have different items under one key; the texts of two translations may differ.
    """
    sets = [_read_set(*each) for each in sources]
    if len(sets) == 1:
        return tuple(sets)
    first, second = sets
    for key, (folder, item) in second.known.items():
        if key in first.known:
            _check_same(first.known[key], item, folder, is_translation=True)
    # A translation has the name of the folder that its runs lie in, or their own names where that is one folder.
    folders = [[folder.resolve() for folder in each.folders] for each in sources]
    names = [", ".join(sorted({folder.parent.name for folder in each})) for each in folders]
    if len(set(names)) < len(names):
        names = [", ".join(sorted(folder.name for folder in each)) for each in folders]
    return tuple(each._replace(name=name) for each, name in zip(sets, names, strict=True))


def _read_set(folders: Sequence[Path], records: Sequence[Run[EvaluationSummary]]) -> RunSet:
    names = model_names(folders, records)
    runs = [ParallelRun(*each) for each in zip(names, folders, records, strict=True)]
    known: dict[_Key, tuple[Path, ParallelItem]] = {}
    spellings, prompts = Counter[str](), list[dict[str, set[str]]]()
    # By name, so that the order in which the runs are given has no influence.
    ordered = tuple(sorted(runs, key=lambda each: each.name))
    for run in ordered:
        of_run: dict[str, set[str]] = {}
        for key, item in run.items().items():
            _check_same(known.setdefault(key, (run.folder, item)), item, run.folder, is_translation=False)
            of_run.setdefault(key[0], set()).add(key[1])
            spellings[str(item.language)] += 1
        prompts.append(of_run)
    return RunSet(ordered, tuple(prompts), spellings, known)


def _check_same(known: tuple[Path, ParallelItem], item: ParallelItem, folder: Path, *, is_translation: bool) -> None:
    first, other = known
    facts: dict[str, tuple[object, object]] = {
        "the category": (other.category, item.category),
        "the subset": (other.subset, item.subset),
        "the number of pairs": (other.num_pairs, item.num_pairs),
    }
    if not is_translation and other.lengths and item.lengths:
        facts["the lengths of the responses"] = (other.lengths, item.lengths)
    differing = next((name for name, (there, here) in facts.items() if there != here), None)
    if differing is not None:
        there, here = facts[differing]
        raise EvidenceError(
            f"prompt {item.prompt!r} in {item.language} is another item than in {first}: "
            f"{differing}: {here} here, {there} there",
            where=str(folder),
            do="evaluate all models on the same benchmark files",
        )


class CommonItems(NamedTuple):
    """The items that all models have in all compared languages.

    ``languages`` are those compared with the ``baseline``, as the runs spell them, and ``identities`` has the spelling
    of each identity, the baseline first. The ``keys`` are in that order, then by prompt.
    """

    languages: tuple[str, ...]
    baseline: str
    identities: dict[str, str]
    keys: tuple[_Key, ...]
    lacking: dict[str, Lacking]
    num_left_out: int

    @property
    def num_items(self) -> int:
        """The number of items, each in all languages."""
        return len(self.keys) // len(self.identities)


class _Need(NamedTuple):
    """An evaluation with the prompts that it has and the languages that it should have, by identity."""

    name: str
    prompts: dict[str, set[str]]
    languages: set[str]


def share_among_models(
    sets: Sequence[RunSet], chosen: Sequence[str] | None, baseline: str | None, *, where: str
) -> CommonItems:
    """Return the items that every model has in all languages that all have; only the first set needs the baseline.

    Raises EvidenceError for fewer than two common languages, for a baseline that is not there, and for no common item.
    """
    spellings = sum((each.spellings for each in sets), Counter[str]())
    spelling = {language_key(code): common for code, common in common_spellings(spellings, language_key).items()}
    every = compared_languages(set(spelling.values()), chosen, where=where)
    num_items = Counter(dict.fromkeys(every, 0))
    for code, number in sets[0].spellings.items():
        if (common := spelling[language_key(code)]) in every:
            num_items[common] += number
    reference = language_key(baseline_of(num_items, baseline, where=where))
    wanted = {language_key(code) for code in every}
    needs = [
        # A model has one name in both translations.
        _Need(run.name, prompts, wanted)
        if place == 0
        else _Need(f"{run.name} ({each.name})", prompts, wanted - {reference})
        for place, each in enumerate(sets)
        for run, prompts in zip(each.runs, each.prompts, strict=True)
    ]
    compared = _compared_by_all(needs, wanted, reference, spelling, where=where)
    prompts = set[str].intersection(*(need.prompts[code] for need in needs for code in compared & need.languages))
    if not prompts:
        raise EvidenceError(
            f"no item is in all of {number_of(len(compared), 'language')} of {number_of(len(needs), 'evaluation')}",
            where=where,
            do="evaluate the models on the same parallel items, which have one prompt id in all languages",
        )
    union = {code: set[str]().union(*(need.prompts.get(code, set()) for need in needs)) for code in compared}
    others = tuple(sorted(spelling[code] for code in compared - {reference}))
    identities = {language_key(code): code for code in (spelling[reference], *others)}
    return CommonItems(
        others,
        spelling[reference],
        identities,
        tuple((code, prompt) for code in identities for prompt in sorted(prompts)),
        _lacking(needs, union, spelling),
        sum(len(union[code] - prompts) for code in compared),
    )


def _compared_by_all(
    needs: Sequence[_Need], wanted: set[str], reference: str, spelling: Mapping[str, str], *, where: str
) -> set[str]:
    """Return the languages that all evaluations have. Raises EvidenceError for fewer than two, or no baseline."""
    compared = wanted.difference(*(need.languages - need.prompts.keys() for need in needs))
    if reference in compared and len(compared) > 1:
        return compared
    without = [need for need in needs if reference in need.languages and reference not in need.prompts]
    if without:
        problem = f"{without[0].name} has no item in {spelling[reference]}, with which the others are compared"
    else:
        problem = f"the evaluations share no language besides {spelling[reference]}"
    have = "; ".join(
        f"{need.name}: {', '.join(sorted(spelling[code] for code in need.prompts if code in wanted))}" for need in needs
    )
    do = Advice("leave an evaluation out, or evaluate its model in these languages")
    shared = sorted(spelling[code] for code in compared)
    if len(shared) > 1:
        do = Advice(do, ", or compare with a language that all have: ", Remedy("baseline_language", shared[0]))
    raise EvidenceError(problem, where=where, allowed=have, do=do)


def _lacking(needs: Sequence[_Need], union: Mapping[str, set[str]], spelling: Mapping[str, str]) -> dict[str, Lacking]:
    """Return what each evaluation lacks of what others have; nothing for a complete one."""
    lacking: dict[str, Lacking] = {}
    for need in needs:
        codes = tuple(sorted(spelling[code] for code in need.languages - need.prompts.keys()))
        num_items = sum(len(union[code] - need.prompts[code]) for code in union.keys() & need.languages)
        if codes or num_items:
            lacking[need.name] = Lacking(languages=codes, num_items=num_items)
    return lacking
