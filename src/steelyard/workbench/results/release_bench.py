"""A release as a benchmark: its cases ranked by what people decided, their counts, and ``bench.toml`` beside them.

The headline is the mean of accuracy and exact match over the subsets, each a plain mean over first-tier categories, as
in CheemsBench. The file holds the number of prompts of each subset and the hash of the cases, so that an evaluation
names a part that is missing and refuses a file that has changed. Where all languages have the same counts, as parallel
items have, the counts are those of each language and the headline is the mean over languages. The file also states the
label error by people's first answers, which an export of what they decided lacks.
"""

import json
from collections import Counter
from collections.abc import Iterable, Iterator
from importlib.metadata import version
from itertools import count
from typing import Any

import numpy as np
from msgspec.structs import replace

from steelyard.core.iteration import batched
from steelyard.core.text import answer_language
from steelyard.core.types import Case, JsonObject
from steelyard.evaluation.bench_pairs import lay_out_pairs
from steelyard.evaluation.columns import bench_columns, join_bench
from steelyard.evaluation.people_answers import people_errors
from steelyard.ranking.judgment_table import Only, edges_of, judgment_table
from steelyard.ranking.pairs import pairs_of
from steelyard.ranking.tiers import ranking_of, tiers_of
from steelyard.report.items import is_simulated
from steelyard.statistics.bootstrap import draw_layout
from steelyard.statistics.stated_label_error import StatedLabelError, StatedMeans

_STANDING = Only(kind=("human",), evidence=("aligned",))
_CASES_AT_A_TIME = 256
_MEASURES = ("accuracy", "exact_match")
_NUM_RESAMPLES = 1000


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


def state_label_error(cases: Iterable[Case], files: dict[str, str]) -> StatedLabelError | None:
    """Estimate the label error of ranked cases that have people's first answers; null where these do not tell it.

    ``files`` are the case files that are published, with their SHA-256.
    """
    columns = join_bench([bench_columns(batch, None, "strict") for batch in batched(cases, _CASES_AT_A_TIME)])
    if not len(columns.prompt):
        return None
    bench = lay_out_pairs(columns, "strict")
    blocks = draw_layout(bench.layout, bench.included_units, num_resamples=_NUM_RESAMPLES, seed=0)
    by_people = people_errors(columns, np.zeros(len(columns.prompt), dtype=bool), blocks, seed=0)
    errors = by_people.errors
    if errors is None:
        return None
    exact = None if by_people.prompts is None else by_people.prompts.exact_match
    return StatedLabelError(
        method="people",
        items=len(columns.start),
        files=files,
        label=StatedMeans.of(errors.label.macro, errors.label.micro),
        most=StatedMeans.of(errors.most.macro, errors.most.micro),
        exact_match=None if exact is None else StatedMeans.of(exact.macro, exact.micro),
    )


class ReleaseCounts:
    """Counts of a release, gathered while its cases pass; ``numbers`` of prompts, responses, pairs, judgments, ratings.

    ``people`` are those whose judgments and ratings it has, also where several gave one together. ``languages`` are
    those of the prompts; of translations, from which to which.
    """

    def __init__(self) -> None:
        self.numbers: Counter[str] = Counter()
        self.categories: Counter[str] = Counter()
        self.languages: Counter[str] = Counter()
        self.people: set[str] = set()
        self.evidence: set[str] = set()
        self.is_simulated = False
        self._by_subset: Counter[str | None] = Counter()
        self._by_language: dict[str | None, Counter[str | None]] = {}
        self._num_comparable = 0

    def counted(self, cases: Iterable[Case]) -> Iterator[Case]:
        """Yield the cases while they are counted."""
        for case in cases:
            self.add(case)
            yield case

    def add(self, case: Case) -> None:
        """Count a case; it is comparable if it orders two responses."""
        self.numbers.update(
            prompts=1,
            responses=len(case.responses),
            pairs=len(pairs_of(case)) if case.ranking is not None or case.pairs is not None else 0,
            judgments=len(case.judgments),
            ratings=len(case.ratings),
        )
        self.categories[case.prompt.category[0] if case.prompt.category else ""] += 1
        language, of_answers = case.prompt.language or "", answer_language(case.prompt) or ""
        self.languages[language if language == of_answers else f"{language} → {of_answers}"] += 1
        labels = [(judgment.kind, judgment.judge, judgment.meta) for judgment in case.judgments]
        labels += [(rating.kind, rating.rater, rating.meta) for rating in case.ratings]
        self.people.update(
            person for kind, name, meta in labels if kind == "human" for person in (meta or {}).get("people") or [name]
        )
        self.evidence |= {str(case.meta.get("evidence", ""))} - {""}
        self.is_simulated = self.is_simulated or is_simulated(case)
        self._by_subset[case.prompt.subset or None] += 1
        self._by_language.setdefault(case.prompt.language, Counter())[case.prompt.subset or None] += 1
        self._num_comparable += len(case.ranking or ()) > 1 or bool(case.pairs)

    def facts(self, *, release: str, at: str, evidence: str, sha256: str) -> dict[str, str]:
        """Return the values of the sentences of the card."""
        return {
            "release": release,
            "date": at,
            "software": f"steelyard {version('steelyard')}",
            "evidence": evidence,
            "items": f"{self.numbers['prompts']:,}",
            "judgments": f"{self.numbers['judgments']:,}",
            "ratings": f"{self.numbers['ratings']:,}",
            "judges": f"{len(self.people):,}",
            "sha256": sha256,
        }

    def bench_file(
        self, *, name: str, release: str, files: dict[str, str], label_error: StatedLabelError | None = None
    ) -> str | None:
        """Return the content of ``bench.toml``; null if no case orders two responses: nothing could be evaluated.

        ``files`` are the case files with their SHA-256.
        """
        if not self._num_comparable:
            return None
        rest = self._name_of_rest() if None in self._by_subset else None
        first, *others = self._by_language.values()
        is_by_language = bool(others) and None not in self._by_language and all(each == first for each in others)
        numbers = first if is_by_language else self._by_subset
        subsets = {rest if subset is None else subset: n for subset, n in numbers.items()}
        settings: JsonObject = {"name": name, "version": release, "measures": list(_MEASURES)}
        settings |= {} if rest is None else {"default_subset": rest}
        settings |= {"languages": sorted(map(str, self._by_language))} if is_by_language else {}
        lines = [
            "# These cases as a benchmark, which `steelyard evaluate` reads from this folder (docs/formats.md).",
            *_assignments(settings),
            "",
            "[subsets]",
            *_assignments(dict(sorted(subsets.items(), key=str))),
            "",
            "[files]",
            *_assignments(files),
            *([] if label_error is None else ["", "[label_error]", *_assignments(label_error.record())]),
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
    if isinstance(value, dict):
        return f"{{ {', '.join(_assignments(value))} }}"
    return _text(value) if isinstance(value, str) else str(value)


def _text(text: str) -> str:
    """Return a TOML string: as in JSON, with the one control character that TOML forbids in addition."""
    return json.dumps(text, ensure_ascii=False).replace("\x7f", "\\u007f")
