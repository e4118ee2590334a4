"""A release as a benchmark: its cases ranked by what people decided, and the ``bench.toml`` beside them.

The headline is the mean of accuracy and exact match over the subsets, each a plain mean over first-tier categories, as
in CheemsBench. The file holds the number of prompts of each subset and the hash of the cases, so that an evaluation
names a part that is missing and refuses a file that has changed.
"""

import json
from collections import Counter
from collections.abc import Iterable, Iterator
from itertools import count
from typing import Any

from msgspec.structs import replace

from steelyard.core.iteration import batched
from steelyard.core.types import Case, JsonObject
from steelyard.ranking.judgment_table import Only, edges_of, judgment_table
from steelyard.ranking.tiers import ranking_of, tiers_of

_STANDING = Only(kind=("human",), evidence=("aligned",))
_CASES_AT_A_TIME = 256
_MEASURES = ("accuracy", "exact_match")


def rank_cases(cases: Iterable[Case]) -> Iterator[Case]:
    """Yield the cases with the ranking of what people decided (CHEEMS, algorithm 1).

    A case that they ranked no longer lists pairs, which are older. One without a judgment of theirs stays as it is.
    """
    for batch in batched(cases, _CASES_AT_A_TIME):
        table = judgment_table(batch, _STANDING)
        tiers = tiers_of(edges_of(table.verdicts), table.num_responses).tolist()
        for case, row in zip(batch, tiers, strict=True):
            ranking = ranking_of([response.id for response in case.responses], row)
            yield case if ranking is None else replace(case, ranking=ranking, pairs=None)


class BenchCounts:
    """The counts of a benchmark's cases by subset, gathered while the cases pass."""

    def __init__(self) -> None:
        self._by_subset: Counter[str | None] = Counter()
        self._num_comparable = 0

    def add(self, case: Case) -> None:
        """Count a case; it is comparable if it orders two responses."""
        self._by_subset[case.prompt.subset or None] += 1
        self._num_comparable += len(case.ranking or ()) > 1 or bool(case.pairs)

    def bench_file(self, *, name: str, version: str, files: dict[str, str]) -> str | None:
        """Return the content of ``bench.toml``; null if no case orders two responses: nothing could be evaluated.

        ``files`` are the case files with their SHA-256.
        """
        if not self._num_comparable:
            return None
        rest = self._name_of_rest() if None in self._by_subset else None
        subsets = {rest if subset is None else subset: n for subset, n in self._by_subset.items()}
        settings: JsonObject = {"name": name, "version": version, "measures": list(_MEASURES)}
        settings |= {} if rest is None else {"default_subset": rest}
        lines = [
            "# These cases as a benchmark, which `steelyard evaluate` reads from this folder (docs/formats.md).",
            *_assignments(settings),
            "",
            "[subsets]",
            *_assignments(dict(sorted(subsets.items(), key=str))),
            "",
            "[files]",
            *_assignments(files),
        ]
        return "\n".join(lines) + "\n"

    def _name_of_rest(self) -> str:
        """Return a name, which no subset has, for the cases without one."""
        if len(self._by_subset) == 1:
            return "all"
        names = ("other" if number == 1 else f"other {number}" for number in count(1))
        return next(name for name in names if name not in self._by_subset)


def _assignments(values: dict[Any, Any]) -> list[str]:
    return [f"{_text(str(key))} = {_value(value)}" for key, value in values.items()]


def _value(value: Any) -> str:
    if isinstance(value, list):
        return f"[{', '.join(map(_value, value))}]"
    return _text(value) if isinstance(value, str) else str(value)


def _text(text: str) -> str:
    """Return a TOML string: as in JSON, with the one control character that TOML forbids in addition."""
    return json.dumps(text, ensure_ascii=False).replace("\x7f", "\\u007f")
