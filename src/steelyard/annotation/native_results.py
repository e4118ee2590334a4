"""Results of a native-speaker check by language: how far people agree with the reference labels, and with models.

M-RewardBench (appendix D) compares the preferences of native speakers on 50 items of a language with its reference
labels and with one reward model, by examples (Table 8). Here each comparison is a share of items with its interval. An
item of several people counts once, with the mean of their answers. A person who calls the responses the same, or does
not judge, is counted apart and has no part in a share of agreement.
"""

from collections.abc import Iterable, Mapping, Sequence
from statistics import fmean

import numpy as np

from steelyard.annotation.kinds.native_check import reference_of
from steelyard.core.types import Case, Judgment, Record
from steelyard.statistics.intervals import Estimate, one_sample, score_interval


class NativeResult(Record, frozen=True, kw_only=True, omit_defaults=False):
    """The results of a language, as shares of items. ``simulated``: at least one of the answers is by no real person.

    ``reference``: the preferred response is the better one of the reference. ``judges``: the same for the preference of
    each judge that the cases have, by name. ``same``: both are called the same. ``native``: the texts read as a native
    speaker writes. ``suited``: the item makes sense in the language.
    """

    language: str
    num_items: int
    reference: Estimate
    same: Estimate
    native: Estimate
    suited: Estimate
    judges: dict[str, Estimate]
    simulated: bool


def native_results(cases: Iterable[Case]) -> tuple[NativeResult, ...]:
    """Return the results of each language, sorted, from exported cases of a native-speaker check."""
    by_language: dict[str, list[Case]] = {}
    for case in cases:
        if _answers(case):
            by_language.setdefault(case.prompt.language or "", []).append(case)
    return tuple(_result(language, by_language[language]) for language in sorted(by_language))


def _answers(case: Case) -> list[Judgment]:
    return [each for each in case.judgments if each.kind == "human" and "entries" in (each.meta or {})]


def _result(language: str, cases: Sequence[Case]) -> NativeResult:
    references = [(reference_of(case) or ("",))[0] for case in cases]
    judges = sorted({each.judge for case in cases for each in case.judgments if each.kind != "human"})
    answers = [_answers(case) for case in cases]
    return NativeResult(
        language=language,
        num_items=len(cases),
        reference=_share([_agreement(each, better) for each, better in zip(answers, references, strict=True)]),
        same=_share([fmean(each.verdict == "tie" for each in of_item) for of_item in answers]),
        native=_share([_entry(of_item, "fluency", "native") for of_item in answers]),
        suited=_share([_entry(of_item, "suited", "yes") for of_item in answers]),
        judges={
            judge: _share(
                [_agreement(each, _choice_of(case, judge)) for each, case in zip(answers, cases, strict=True)]
            )
            for judge in judges
        },
        simulated=any((each.meta or {}).get("simulated") for of_item in answers for each in of_item),
    )


def _agreement(answers: Sequence[Judgment], better: str | None) -> float | None:
    """Return the share of the strict answers to an item that prefer a response; null without any."""
    preferred = [choice for each in answers if (choice := _preferred(each)) is not None]
    return fmean(choice == better for choice in preferred) if preferred and better is not None else None


def _preferred(judgment: Judgment) -> str | None:
    return {"left": judgment.left, "right": judgment.right}.get(judgment.verdict)


def _choice_of(case: Case, judge: str) -> str | None:
    """Return the response that a judge prefers; null where it has no strict judgment, or contradicts itself."""
    choices = {_preferred(each) for each in case.judgments if each.judge == judge}
    return choices.pop() if len(choices) == 1 else None


def _entry(answers: Sequence[Judgment], name: str, value: str) -> float | None:
    entries: list[Mapping[str, str]] = [(each.meta or {})["entries"] for each in answers]
    values = [each[name] for each in entries if name in each]
    return fmean(each == value for each in values) if values else None


def _share(values: Iterable[float | None]) -> Estimate:
    """Return the mean over items with its score interval; items without a value are left out."""
    known = np.array([value for value in values if value is not None], np.float64)
    if len(known) < 2:
        return Estimate(float(known[0]) if len(known) else None, None, None, len(known), why="fewer than two items")
    mean, variance = float(known.mean()), float(known.var(ddof=1)) / len(known)
    low, high = score_interval(mean, variance, one_sample(len(known)))
    return Estimate(mean, min(low, mean), max(high, mean), len(known))
