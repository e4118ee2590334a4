"""Self-tests of a reward model on the user's cases, before its scores are used.

They take seconds: a few cases (the shortest, the longest, one of each language), with two answers each.
"""

import math
from collections.abc import Callable, Iterable, Iterator, Sequence, Sized
from typing import NamedTuple

import msgspec

from steelyard.core.errors import ModelError
from steelyard.core.protocols import ComparesAnswers, JudgeModel, RewardModel, SelfTest, SelfTested, State
from steelyard.core.remedies import Advice, Remedy, joined
from steelyard.core.text import num_characters
from steelyard.core.types import Case, Meta, Record, Scores
from steelyard.io.progress import bar, log, track
from steelyard.statistics.tolerance import compare_scores

MOST_CASES = 6
MOST_ANSWERS = 2

_UNMOVED = Advice(
    "say ", Remedy("model.batch_size", 1), " and see whether it goes away; then check the padding, and the model's code"
)


class SelfTestResult(Record, frozen=True, kw_only=True):
    """The record of one test; ``why`` it does not apply, or why a passed test is doubtful."""

    state: State
    why: str | None = None
    figures: Meta


class SelfTestSummary(Record, frozen=True, kw_only=True):
    """The record of a model's self-tests; ``state`` is ``passed``, ``off`` or ``not applicable`` with ``why``."""

    state: str
    why: str | None = None
    num_cases: int | None = None
    num_answers: int | None = None
    tests: dict[str, SelfTestResult] | None = None


class Sample(NamedTuple):
    """The cases of the self-tests, without their labels."""

    cases: tuple[Case, ...]

    @property
    def apart(self) -> list[Case]:
        """One case per answer."""
        return [
            msgspec.structs.replace(case, responses=(response,)) for case in self.cases for response in case.responses
        ]

    @property
    def turned(self) -> list[Case]:
        """The cases in reverse order, each with its answers in reverse order."""
        return [msgspec.structs.replace(case, responses=case.responses[::-1]) for case in self.cases[::-1]]

    def name_of(self, place: int) -> str:
        """Return the name of the answer at a position among all answers."""
        places = [(case, response.id) for case in self.cases for response in case.responses]
        case, response = places[place]
        return f"prompt {case.prompt.id!r}, answer {response!r}"


def sample_of(cases: Iterable[Case]) -> Sample:
    """Return the shortest and the longest case and the longest of each language in turn, up to `MOST_CASES`."""
    shortest, longest = dict[str | None, Case](), dict[str | None, Case]()
    for case in cases:
        if not case.responses:
            continue
        language = case.prompt.language
        if language not in shortest or _length(case) < _length(shortest[language]):
            shortest[language] = case
        if language not in longest or _length(case) >= _length(longest[language]):
            longest[language] = case
    if not longest:
        return Sample(())
    # Languages in the order of their shortest cases, as if all cases were sorted by length.
    languages = sorted(shortest, key=lambda language: _length(shortest[language]))
    overall = shortest[languages[0]], max(longest.values(), key=_length)
    chosen = {case.key: case for case in (*overall, *(longest[language] for language in languages))}
    return Sample(tuple(_bare(case) for case in list(chosen.values())[:MOST_CASES]))


def _length(case: Case) -> int:
    return max(map(num_characters, case.responses)) + sum(len(message.content) for message in case.prompt.messages)


def _bare(case: Case) -> Case:
    answers = case.responses if len(case.responses) <= MOST_ANSWERS else (case.responses[0], case.responses[-1])
    return Case(prompt=case.prompt, responses=answers)


def self_tested(model: RewardModel, cases: Iterable[Case], *, name: str, is_wanted: bool = True) -> SelfTestSummary:
    """Test a model on a few of the cases, and return the record for a run's summary.

    Raises ModelError that names every failed test with its figures and its remedy.
    """
    if not is_wanted:
        log(Advice("the self-tests of the model are off (", Remedy("self_test", value=False), "); the run records it"))
        return SelfTestSummary(state="off")
    if isinstance(model, JudgeModel):
        why = "a judge gives verdicts, whose outcomes every run counts"
        return SelfTestSummary(state="not applicable", why=why)
    sample = sample_of(cases)
    if not sample.cases:
        return SelfTestSummary(state="not applicable", why="no case has an answer")
    with bar(f"testing {name}", None) as progress:
        results = []
        for test in _tests(model, sample, cases):
            results.append(test)
            progress.advance(note=test.name)
    failed = [test for test in results if test.state == "failed"]
    if failed:
        reasons = "; ".join(f"{test.name}: {test.remark}" for test in failed)
        do = joined("; ", list(dict.fromkeys(test.do for test in failed if test.do is not None)))
        raise ModelError(
            f"{len(failed)} of {len(results)} self-tests failed, and no score is given: {reasons}",
            where=f"the model {name!r}",
            do=Advice(do, ". ", Remedy("self_test", value=False), " goes on without the tests, and the run records it"),
        )
    for test in results:
        if test.is_doubtful:
            log(f"self-test {test.name} of {name}: {test.remark}")
    return SelfTestSummary(
        state="passed",
        num_cases=len(sample.cases),
        num_answers=len(sample.apart),
        tests={test.name: SelfTestResult(state=test.state, why=test.remark, figures=test.figures) for test in results},
    )


def _tests(model: RewardModel, sample: Sample, cases: Iterable[Case]) -> Iterator[SelfTest]:
    if isinstance(model, SelfTested):
        length = _length_test(model, cases)
        yield length
        if length.state == "failed":
            return
    together = _values(model.score(sample.cases))
    finite = _finite(together, sample)
    yield finite
    if finite.state == "failed":
        return
    yield _compared(
        "alone",
        model,
        sample,
        together,
        lambda: [score for case in sample.apart for score in _values(model.score([case]))],
    )
    yield _compared("order", model, sample, together, lambda: _values(model.score(sample.turned))[::-1])
    if isinstance(model, SelfTested):
        yield from model.self_tests(sample.cases)


def _values(lines: Iterator[Scores]) -> list[float | None]:
    return [score for line in lines for score in line.scores.values()]


def _finite(scores: Sequence[float | None], sample: Sample) -> SelfTest:
    wrong = [place for place, score in enumerate(scores) if score is not None and not math.isfinite(score)]
    figures = {"num_answers": len(scores), "num_not_finite": len(wrong), "num_unscored": scores.count(None)}
    if not wrong:
        return SelfTest(name="finite", state="passed", figures=figures)
    remark = f"{len(wrong)} of {len(scores)} scores are NaN or infinite (first: {sample.name_of(wrong[0])})"
    do = Advice("check the model's weights for NaN, and its number type: ", Remedy("model.dtype", "float32"))
    return SelfTest(name="finite", state="failed", figures=figures, remark=remark, do=do)


def _compared(
    name: str,
    model: RewardModel,
    sample: Sample,
    together: Sequence[float | None],
    scores: Callable[[], Sequence[float | None]],
) -> SelfTest:
    if isinstance(model, ComparesAnswers) and model.compares_answers:
        remark = "this model's number for an answer depends on the case's other answers by intent"
        return SelfTest(name=name, state="not applicable", remark=remark)
    other = scores()
    dtype = model.protocol().get("dtype")
    difference = compare_scores(together, other, dtype=dtype)
    figures = {
        "largest_difference": difference.largest if math.isfinite(difference.largest) else None,
        "tolerance": difference.bound,
        "dtype": dtype,
        "num_answers": len(together),
    }
    if difference.is_rounding:
        return SelfTest(name=name, state="passed", figures=figures, remark=difference.remark)
    assert difference.position is not None, "something differs"
    way = "by itself" if name == "alone" else "with the cases and answers in the opposite order"
    remark = (
        f"{sample.name_of(difference.position)} scores {_number(together[difference.position])} with others and "
        f"{_number(other[difference.position])} {way}, where rounding allows a difference of {difference.bound:.3g}"
    )
    return SelfTest(name=name, state="failed", figures=figures, remark=remark, do=_UNMOVED)


def _number(score: float | None) -> str:
    return "nothing" if score is None else f"{score:.6g}"


def _length_test(model: SelfTested, cases: Iterable[Case]) -> SelfTest:
    """Count the answers that exceed the length limit, by language, over all cases, without scoring them."""
    by_language: dict[str, dict[str, int]] = {}
    longest = 0
    for case in track(cases, "counting tokens", len(cases) if isinstance(cases, Sized) else None):
        counts = by_language.setdefault(case.prompt.language or "unknown", {"num_too_long": 0, "num_answers": 0})
        lengths = model.lengths(case)
        counts["num_too_long"] += sum(length > model.max_length for length in lengths)
        counts["num_answers"] += len(case.responses)
        longest = max([longest, *lengths])
    number = sum(counts["num_too_long"] for counts in by_language.values())
    figures = {
        "num_too_long": number,
        "max_length": model.max_length,
        "longest": longest,
        "by_language": dict(sorted(by_language.items())),
    }
    if not number:
        return SelfTest(name="length", state="passed", figures=figures)
    languages = ", ".join(
        f"{name} {counts['num_too_long']:,}" for name, counts in sorted(by_language.items()) if counts["num_too_long"]
    )
    num_answers = sum(counts["num_answers"] for counts in by_language.values())
    remark = (
        f"{number:,} of {num_answers:,} answers are longer than {model.max_length:,} tokens ({languages}; "
        f"the longest has {longest:,})"
    )
    is_none_left = number == num_answers and model.over_length == "unscored"
    if model.over_length != "refuse" and not is_none_left:
        what = "get no score" if model.over_length == "unscored" else f"are cut on the {model.over_length}"
        return SelfTest(name="length", state="passed", figures=figures, remark=f"{remark} and {what}")
    return SelfTest(
        name="length",
        state="failed",
        figures=figures,
        remark=f"{remark}: no answer is left" if is_none_left else f"{remark}, and over_length is 'refuse'",
        do=Advice(
            "say ",
            *(() if is_none_left else (Remedy("over_length", "unscored"), " (no score, counted), ")),
            Remedy("over_length", "left"),
            " or right (cut, counted), or ",
            Remedy("max_length", longest),
        ),
    )
