"""One evaluation of parallel items: the items that all of its compared languages have, and their summary."""

from collections import Counter
from collections.abc import Sequence
from itertools import combinations
from pathlib import Path
from typing import NamedTuple

import msgspec

from steelyard.core.errors import EvidenceError
from steelyard.core.languages import language_key
from steelyard.core.remedies import Advice, Remedy
from steelyard.core.text import common_spellings, number_of
from steelyard.core.types import Run
from steelyard.evaluation.evaluations import bench_of
from steelyard.evaluation.items import Item, read_items
from steelyard.evaluation.language_groups import baseline_of, compared_languages, kin_of
from steelyard.evaluation.languages import LanguagesSummary, ParallelEvaluation, compare_languages
from steelyard.evaluation.summary import EvaluationSummary


class SharedItems(NamedTuple):
    """The items of one evaluation that all compared languages have, and the baseline among these languages.

    ``left_out`` counts, by language, the items that not every language has; ``dropped`` counts all others of the
    ``num_read`` items by reason.
    """

    items: list[Item]
    baseline: str
    left_out: dict[str, int]
    dropped: dict[str, int]
    num_read: int


def read_shared(folder: Path, chosen: Sequence[str] | None, baseline: str | None) -> SharedItems:
    """Read the items of an evaluation that all compared languages have.

    Raises EvidenceError for a single language, for a chosen one that no item has, and for no shared item.
    """
    read = list(read_items(folder))
    # One spelling of each language, and the first of a prompt's items in a language.
    spelling = common_spellings((item.language for item in read if item.language is not None), language_key)
    by_key = {(item.prompt, spelling.get(item.language or "")): item for item in reversed(read)}
    items = [msgspec.structs.replace(item, language=language) for (_, language), item in reversed(by_key.items())]
    present = {item.language for item in items if item.language is not None}
    compared = compared_languages(present, chosen, where=str(folder))
    num_items = Counter(item.language for item in items if item.language in compared)
    reference = baseline_of(num_items, baseline, where=str(folder))
    dropped = Counter[str]()
    usable: list[Item] = []
    for item in items:
        if item.exact_match is None:
            dropped["no comparable pair, or no score"] += 1
        elif item.language is None:
            dropped["no language"] += 1
        elif item.language not in compared:
            dropped["language not compared"] += 1
        else:
            usable.append(item)
    number = Counter(item.prompt for item in usable)
    shared = [item for item in usable if number[item.prompt] == len(compared)]
    if not shared:
        counts = ", ".join(f"{name} {n:,}" for name, n in sorted(Counter(item.language for item in usable).items()))
        raise EvidenceError(
            f"no item is in all of {number_of(len(compared), 'language')} ({counts} items)",
            where=str(folder),
            do=_remedy(usable),
        )
    left_out = Counter(item.language for item in usable if number[item.prompt] < len(compared))
    if left_out:
        dropped["not in every language"] = left_out.total()
    if len(items) < len(read):
        dropped["in one language twice"] = len(read) - len(items)
    return SharedItems(
        shared, reference, {str(name): n for name, n in sorted(left_out.items())}, dict(dropped), len(read)
    )


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


def summarise_languages(
    run: Run[EvaluationSummary], folder: Path, shared: SharedItems, *, num_resamples: int, seed: int
) -> LanguagesSummary:
    """Return the summary of one evaluation by language, by the arithmetic of its bench."""
    summary = run.summary
    return compare_languages(
        ParallelEvaluation(summary.model, summary.bench, shared.items, shared.left_out, summary.coverage),
        bench_of(run, folder).breakdown,
        shared.baseline,
        kin_of({item.language for item in shared.items if item.language is not None}),
        num_resamples=num_resamples,
        seed=seed,
    )
