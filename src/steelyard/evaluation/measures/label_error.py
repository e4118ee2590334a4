"""The label error of a bench, the accuracy of a perfect model on it, and the model's distance to that.

An accuracy of 100 % is out of reach where labels are wrong. People's answers to the same pairs tell how many are
(`statistics.label_error`). The human ceiling is another number: the agreement of one person with the others, which a
model may exceed. A model can exceed neither the truth nor, except by repeating its errors, this one.

Answers are the strict judgments of kind ``human``. Several of one person on a pair are one, answers of unnamed people
those of one person, and of a task that people settled later only the first answers count, because the last are not
independent. A pair that loses its label to a disagreement, such as one merged into a tier, still counts for the
disagreement, and so does a prompt that the bench does not count.
"""

from collections.abc import Iterator, Mapping
from typing import NamedTuple

import numpy as np
from msgspec.structs import replace

from steelyard.core.numerics import Booleans, Integers
from steelyard.core.types import Case, Record
from steelyard.evaluation.measure import (
    Means,
    Measure,
    MeasureRow,
    ResampledBench,
    ScoredBench,
    means_row,
)
from steelyard.evaluation.tables import (
    PERCENT,
    Grouped,
    Panel,
    Sentence,
    category_word,
    count,
    decimal,
    percent,
    points,
    points_spread,
    spread,
    table,
    word,
)
from steelyard.ranking.judgment_table import Only, judgment_table
from steelyard.statistics.agreement import NUM_LABELS, TIED, UNLABELLED, count_labels, orient_labels, unique_labels
from steelyard.statistics.bootstrap import Blocks, draw_blocks
from steelyard.statistics.groups import Label, units_of
from steelyard.statistics.intervals import Estimate
from steelyard.statistics.label_error import TOO_FEW, AnsweredPairs, LabelErrors, Shares, label_errors
from steelyard.statistics.unique_rows import find_codes, unique_codes

TEXT = {
    "label_error": {"en": "Label error", "zh": "标签错误率"},
    "label_error_most": {"en": "Errors on hard pairs only", "zh": "仅难判者出错"},
    "perfect_model": {"en": "Perfect model", "zh": "完美模型"},
    "accuracy_with_answers": {"en": "This model", "zh": "本模型"},
    "distance_to_perfect": {"en": "Distance", "zh": "差距"},
    "pairs_with_two_answers": {"en": "Answered twice", "zh": "两人作答"},
    "mean_with_answers": {"en": "Mean of categories", "zh": "各类别平均"},
    "all_with_answers": {"en": "All pairs", "zh": "全部偏好对"},
    "why_too_few_pairs_with_two_answers": {"en": "too few pairs with two answers", "zh": "有两人作答的偏好对太少"},
    "note_label_error": {
        "en": "From how often people contradict each other. The label error holds if they err independently and alike "
        "on all pairs; if their errors gather on hard pairs, it is higher, up to the second value. Errors that people "
        "share are in neither.",
        "zh": "由标注员相互矛盾的频率推算。若各人独立犯错且各偏好对难度相同，标签错误率为第一个值；若错误集中于难判的偏"
        "好对，则更高，最高为第二个值。众人共同的错误两者都不含。",
    },
    "define_label_error": {
        "en": "The share of pairs whose label is the wrong way round. A perfect model, which always prefers the better "
        "answer, has an accuracy of 100% minus that. It is not the agreement of annotators, which compares one person "
        "with the others.",
        "zh": "标签方向错误的偏好对所占比例。总能选出更好回答的完美模型，其准确率为 100% 减去该值。它不同于标注员一致率"
        "：后者是单个人与其余人的比较。",
    },
    "say_label_error": {
        "en": "{error} of this bench's labels are wrong if people err independently (95% interval {interval}), and up "
        "to {most} ({most_interval}) if their errors gather on hard pairs. A perfect model would reach {perfect}, or "
        "{least} in the second case; {model} is {distance} points below the first (95% interval {gap}).",
        "zh": "若标注员独立犯错，该评测集有 {error} 的标签是错的（95% 置信区间 {interval}）；若错误集中于难判的偏好对，"
        "则最多有 {most}（{most_interval}）。完美模型可达 {perfect}，后一种情形下为 {least}；{model} 比前者低 "
        "{distance} 个百分点（95% 置信区间 {gap}）。",
    },
}
NO_PEOPLE = "no strict judgment of a person"
ONE_PERSON = "no pair has answers of two people"


class MeansByCategory(Means, frozen=True, kw_only=True):
    """Macro and micro means, and the value of each category."""

    by_category: dict[str, Estimate]


class LabelErrorSummary(Record, frozen=True, kw_only=True):
    """The label error and what follows from it; all null with the reason in ``why``.

    ``num_pairs`` bench pairs have an answer, ``num_unanswered`` have none and are in no value. ``num_twice`` pairs have
    answers of two people or more, with a label or not. ``num_tied`` answers were ties and count as none.
    ``num_overruled`` labels are against most answers: many of them show that the labels were made elsewhere.

    ``person``: the error of one answer. ``label``: of the labels if people err independently, ``most`` if all errors
    are on coin tosses. ``perfect``: 1 - ``label``. ``model``: the accuracy on these pairs; ``distance``: what it lacks.
    """

    num_people: int
    num_pairs: int
    num_unanswered: int
    num_twice: int
    num_tied: int
    num_overruled: int
    why: str | None = None
    person: MeansByCategory | None = None
    label: MeansByCategory | None = None
    most: MeansByCategory | None = None
    perfect: MeansByCategory | None = None
    model: MeansByCategory | None = None
    distance: MeansByCategory | None = None


class StrictAnswers(NamedTuple):
    """People's strict answers to pairs of one case, (pair,): ``low`` and ``high`` are positions of responses.

    ``votes`` counts the answers for either, (pair, 2).
    """

    case: Integers
    low: Integers
    high: Integers
    votes: Integers
    num_people: int
    num_tied: int


def people_answers(judged: Mapping[int, Case]) -> StrictAnswers:
    """Return the first answers of people, one a person and pair, by the position of the case."""
    positions = np.array(sorted(judged), np.int64)
    table = judgment_table(map(_with_first_answers, (judged[at] for at in positions.tolist())), Only(kind=("human",)))
    verdicts = table.verdicts
    width = int(max(verdicts.left.max(initial=0), verdicts.right.max(initial=0))) + 1
    key = verdicts.pair_keys(width)
    label = orient_labels(verdicts.left, verdicts.right, verdicts.verdict)
    assert UNLABELLED == NUM_LABELS, "a judgment without a verdict has the code of no label"
    labels = unique_labels(key, table.judge, label)
    is_strict = labels.label != TIED
    pairs, place = unique_codes(labels.item[is_strict], int(key.max(initial=-1)) + 1)
    counts = count_labels(place, labels.label[is_strict], len(pairs))
    return StrictAnswers(
        positions[pairs // width**2],
        pairs // width % width,
        pairs % width,
        counts[:, :TIED],
        len(np.unique(labels.rater[is_strict])),
        int((~is_strict).sum()),
    )


def _with_first_answers(case: Case) -> Case:
    """Return the case without answers that people settled together after their first ones."""
    first = tuple(
        judgment
        for judgment in case.judgments
        if judgment.meta is None or judgment.meta.get("stage") in {None, "annotation"}
    )
    return case if len(first) == len(case.judgments) else replace(case, judgments=first)


def estimate(resampled: ResampledBench) -> LabelErrorSummary | None:
    """Estimate the label error; null for a bench without judgments."""
    bench = resampled.bench
    if not bench.columns.judged:
        return None
    answers = people_answers(bench.columns.judged)
    is_twice = answers.votes.sum(axis=1) > 1
    label_of = _labels_of(bench, answers)
    is_labelled = label_of >= 0
    is_used = is_labelled | is_twice
    blocks, row = _resamples(resampled, answers.case[is_used])
    is_turned = bench.columns.better[label_of] > bench.columns.worse[label_of]
    is_first = ~(is_labelled & is_turned)
    agreeing = np.where(is_first, *answers.votes.T)[is_used]
    is_right = (bench.values.better > bench.values.worse)[label_of] & is_labelled
    pairs = AnsweredPairs(
        row, agreeing, answers.votes.sum(axis=1)[is_used] - agreeing, is_labelled[is_used], is_right[is_used]
    )
    errors = label_errors(blocks, pairs) if is_labelled.any() and is_twice.any() else None
    why = NO_PEOPLE if not len(answers.case) else None if errors is not None else _why(is_twice)
    return LabelErrorSummary(
        num_people=answers.num_people,
        num_pairs=int(is_labelled.sum()),
        num_unanswered=len(bench.columns.prompt) - int(is_labelled.sum()),
        num_twice=int(is_twice.sum()),
        num_tied=answers.num_tied,
        num_overruled=int((pairs.is_labelled & (pairs.agreeing < pairs.contrary)).sum()),
        why=why,
        **({} if errors is None else _means(errors)),
    )


def _why(is_twice: Booleans) -> str:
    return TOO_FEW if is_twice.any() else ONE_PERSON


def _labels_of(bench: ScoredBench, answers: StrictAnswers) -> Integers:
    """Return the bench pair that labels each answered pair, -1 for none."""
    columns = bench.columns
    first, second = (side - columns.start[columns.prompt] for side in (columns.better, columns.worse))
    width = int(max(answers.high.max(initial=0), first.max(initial=0), second.max(initial=0))) + 1
    key = (answers.case * width + answers.low) * width + answers.high
    wanted = (columns.prompt * width + np.minimum(first, second)) * width + np.maximum(first, second)
    place, has_answer = find_codes(key, wanted)
    label_of = np.full(len(key), -1)
    label_of[place[has_answer]] = np.flatnonzero(has_answer)
    return label_of


def _resamples(resampled: ResampledBench, case: Integers) -> tuple[Blocks, Integers]:
    """Return resamples of the bench's prompts with those of the answered pairs, and the row of each pair's prompt.

    Where people disagree a prompt may have no comparable pair: without it they would seem to agree.
    """
    columns = resampled.bench.columns
    is_in = columns.included.copy()
    is_in[case] = True
    if (is_in == columns.included).all():
        return resampled.blocks, resampled.rows[case]
    units = units_of(columns.names)
    labels = [Label(units[at], columns.cells[at]) for at in np.flatnonzero(is_in).tolist()]
    blocks = draw_blocks(labels, num_resamples=len(resampled.blocks.weights), seed=resampled.seed)
    return blocks, (np.cumsum(is_in) - 1)[case]


def _means(errors: LabelErrors) -> dict[str, MeansByCategory]:
    return {
        name: MeansByCategory(
            macro=shares.macro,
            micro=shares.micro,
            by_category=dict(zip(errors.groups, shares.estimates, strict=True)),
        )
        for name, shares in errors._asdict().items()
        if isinstance(shares, Shares)
    }


def rows(summary: LabelErrorSummary) -> Iterator[MeasureRow]:
    """Yield the rows of the table of measures."""
    if summary.label is not None and summary.perfect is not None:
        yield means_row(word("label_error"), summary.label)
        yield means_row(word("perfect_model"), summary.perfect)


def panels(summary: LabelErrorSummary) -> Iterator[Panel]:
    """Yield the table of label errors: the means, and each of several categories."""
    parts = (summary.label, summary.most, summary.perfect, summary.model, summary.distance)
    if any(part is None for part in parts):
        return
    values = [part for part in parts if part is not None]
    names = list(values[0].by_category)
    lines = {word("all_with_answers"): [value.micro for value in values]}
    if len(names) > 1:
        lines |= {word("mean_with_answers"): [value.macro for value in values]}
        lines |= {category_word(name): [value.by_category[name] for value in values] for name in names}
    columns = ("group", "label_error", "interval", "label_error_most", "interval", "perfect_model",
               "accuracy_with_answers", "distance_to_perfect", "interval", "pairs_with_two_answers")  # fmt: skip
    cells = [
        (
            name,
            *(cell for each in (error, most) for cell in PERCENT.cells(each)),
            *(percent(each.value) for each in (perfect, model)),
            *(points(distance.value), points_spread(distance)),
            count(error.n),
        )
        for name, (error, most, perfect, model, distance) in lines.items()
    ]
    yield Panel(word("label_error"), None, (Grouped("", table(columns, cells)),), "note_label_error")


def sentences(model: str, summary: LabelErrorSummary) -> Iterator[Sentence]:
    """Yield the label error in words."""
    parts = (summary.label, summary.most, summary.perfect, summary.distance)
    if any(part is None for part in parts):
        return
    error, most, perfect, distance = (part.micro for part in parts if part is not None)
    ends = [None if end is None else 100 * end for end in (distance.value, distance.low, distance.high)]
    value, low, high = (decimal(end, 1) for end in ends)
    yield Sentence(
        "say_label_error",
        {
            "model": model,
            "error": percent(error.value),
            "interval": spread(error),
            "most": percent(most.value),
            "most_interval": spread(most),
            "perfect": percent(perfect.value),
            "least": percent(None if most.value is None else 1 - most.value),
            "distance": value,
            "gap": f"{low} \N{HORIZONTAL ELLIPSIS} {high}",
        },
    )


MEASURE = Measure(
    order=55,
    summary=LabelErrorSummary,
    estimate=estimate,
    text=TEXT,
    rows=rows,
    panels=panels,
    sentences=sentences,
)
