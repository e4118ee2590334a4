"""The label error of a bench, the accuracy of a perfect model on it, and the model's distance to that.

An accuracy of 100 % is out of reach where labels are wrong. Better judges who made a random part of the labels again
tell how many are (`statistics.relabelled`), or else people's answers to the same pairs (`statistics.label_error`). The
human ceiling is another number: the agreement of one person with the others, which a model may exceed. A model can
exceed neither the truth nor, except by repeating its errors, this one.

Answers are the strict first judgments of kind ``human`` (`people_answers`). A pair that loses its label to a
disagreement, such as one merged into a tier, still counts for the disagreement, and so does a prompt that the bench
does not count. Where the cases have no such answers, a ``bench.toml`` may state what its makers estimated from them.
"""

from collections.abc import Callable, Iterator

import numpy as np
from msgspec.structs import replace

from steelyard.core.numerics import Floats
from steelyard.core.types import Record
from steelyard.evaluation.measure import (
    BenchCeiling,
    Means,
    Measure,
    MeasureRow,
    ResampledBench,
    ScoredBench,
    means_row,
)
from steelyard.evaluation.people_answers import first_answers, labels_of, people_errors
from steelyard.evaluation.relabelled import RelabelledPairs, labels_of_bench
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
from steelyard.statistics.intervals import Estimate
from steelyard.statistics.label_error import (
    LabelErrors,
    Shares,
    complement_of,
    distance_to_perfect,
)
from steelyard.statistics.relabelled import RelabelledBench, RelabelledShares, relabelled_shares
from steelyard.statistics.stated_label_error import StatedLabelError
from steelyard.statistics.whole_prompts import WholePrompts

TEXT = {
    "label_error": {"en": "Label error", "zh": "标签错误率"},
    "label_error_most": {"en": "Errors on hard pairs only", "zh": "仅难判者出错"},
    "below_perfect": {"en": "below", "zh": "低"},
    "above_perfect": {"en": "above", "zh": "高"},
    "perfect_model": {"en": "Perfect model", "zh": "完美模型"},
    "accuracy_with_answers": {"en": "This model", "zh": "本模型"},
    "distance_to_perfect": {"en": "Distance", "zh": "差距"},
    "pairs_with_two_answers": {"en": "Answered twice", "zh": "两人作答"},
    "mean_with_answers": {"en": "Mean of categories", "zh": "各类别平均"},
    "all_with_answers": {"en": "All pairs", "zh": "全部偏好对"},
    "why_too_few_pairs_with_two_answers": {"en": "too few pairs with two answers", "zh": "有两人作答的偏好对太少"},
    "why_too_few_relabelled_prompts": {"en": "too few relabelled prompts", "zh": "重新标注的提示词太少"},
    "all_with_labels": {"en": "All prompts", "zh": "全部提示词"},
    "relabelled_pairs": {"en": "Relabelled", "zh": "重新标注"},
    "complete_prompts": {"en": "Relabelled prompts", "zh": "重新标注的提示词"},
    "best_exact_match": {"en": "Best exact match", "zh": "完全匹配率上限"},
    "note_best_exact_match": {
        "en": "A perfect model matches a prompt exactly unless one of its labels is wrong. From the prompts all of "
        "whose pairs were labelled again.",
        "zh": "只要提示词没有一个标签是错的，完美模型就能完全匹配它。只计所有偏好对都重新标注的提示词。",
    },
    "answered_whole": {"en": "Answered whole", "zh": "完整作答的提示词"},
    "note_exact_match_by_people": {
        "en": "A perfect model matches a prompt exactly unless one of its labels is wrong. From the prompts all of "
        "whose pairs two people answered, if they err independently and any order is as likely as another. If people "
        "err above all on answers of nearly equal quality, it is lower.",
        "zh": "只要提示词没有一个标签是错的，完美模型就能完全匹配它。只计所有偏好对都有两人作答的提示词，并假定各人独立"
        "犯错、各种顺序可能性相同。若错误主要出现在质量相近的回答之间，则更低。",
    },
    "say_exact_match_by_people": {
        "en": "If people err independently, a perfect model would match {exact} of the prompts exactly (95% interval "
        "{interval}); {model} is {distance} points {side} (95% interval {gap}).",
        "zh": "若标注员独立犯错，完美模型可完全匹配 {exact} 的提示词（95% 置信区间 {interval}）；{model} 比它{side} "
        "{distance} 个百分点（95% 置信区间 {gap}）。",
    },
    "why_too_few_prompts_answered_whole": {"en": "too few prompts answered whole", "zh": "完整作答的提示词太少"},
    "note_relabelled": {
        "en": "From a random part of the bench that better judges labelled again: the share of its pairs whose label "
        "they contradict. Pairs that they left undecided are in no value.",
        "zh": "由更可靠的评判者重新标注评测集的随机样本得出：其中标签与其判断相反的偏好对所占比例。他们未能判定的偏好"
        "对不计入任何数值。",
    },
    "say_relabelled": {
        "en": "{error} of this bench's labels are wrong (95% interval {interval}): better judges contradict {wrong} of "
        "{pairs:label|labels} that they made again for {prompts:prompt|prompts}, and left {undecided} undecided. A "
        "perfect model would reach {perfect}; {model} is {distance} points {side} (95% interval {gap}).",
        "zh": "该评测集有 {error} 的标签是错的（95% 置信区间 {interval}）：更可靠的评判者为 {prompts} 个提示词重新标注 "
        "{pairs} 个标签，其中 {wrong} 个与原标签相反，另有 {undecided} 个未能判定。完美模型可达 {perfect}；{model} "
        "比它{side} {distance} 个百分点（95% 置信区间 {gap}）。",
    },
    "say_relabelled_none_wrong": {
        "en": "No label of this bench differs from its second label: better judges contradict none of "
        "{pairs:label|labels} that they made again for {prompts:prompt|prompts}, and left {undecided} undecided. The "
        "label error is then {error} (95% interval {interval}), unless the second labels are copies of the first. A "
        "perfect model would reach {perfect}; {model} is {distance} points {side} (95% interval {gap}).",
        "zh": "两次标注没有任何不同：更可靠的评判者为 {prompts} 个提示词重新标注 {pairs} 个标签，与原标签均一致，另有 "
        "{undecided} 个未能判定。标签错误率因此为 {error}（95% 置信区间 {interval}），除非第二次标注只是照抄了原标签。"
        "完美模型可达 {perfect}；{model} 比它{side} {distance} 个百分点（95% 置信区间 {gap}）。",
    },
    "say_relabelled_judge": {
        "en": "With a judge's verdicts on the other pairs, each of these labels counts as {effective}.",
        "zh": "借助评判模型对其余偏好对的判断，每个重新标注的标签相当于 {effective} 个。",
    },
    "say_best_exact_match": {
        "en": "A perfect model would match {exact} of the prompts exactly (95% interval {interval}); {model} is "
        "{distance} points {side} (95% interval {gap}).",
        "zh": "完美模型可完全匹配 {exact} 的提示词（95% 置信区间 {interval}）；{model} 比它{side} {distance} 个百分点"
        "（95% 置信区间 {gap}）。",
    },
    "say_stated_label_error": {
        "en": "This is the label error that the bench states of itself, by people's first answers to its "
        "{cases:case|cases}, which the released files do not have.",
        "zh": "该标签错误率由评测集自身给出，依据标注员对其 {cases} 个案例的首次作答；发布的文件中没有这些作答。",
    },
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
        "{least} in the second case; {model} is {distance} points {side} the first (95% interval {gap}).",
        "zh": "若标注员独立犯错，该评测集有 {error} 的标签是错的（95% 置信区间 {interval}）；若错误集中于难判的偏好对，"
        "则最多有 {most}（{most_interval}）。完美模型可达 {perfect}，后一种情形下为 {least}；{model} 比前者{side} "
        "{distance} 个百分点（95% 置信区间 {gap}）。",
    },
}
NOT_RELABELLED = "no pair that counts was relabelled"


class MeansByCategory(Means, frozen=True, kw_only=True):
    """Macro and micro means, and the value of each category."""

    by_category: dict[str, Estimate]


class RelabelledLabels(Record, frozen=True, kw_only=True):
    """Findings of better judges on the labels of a random part of the prompts.

    Of ``num_prompts`` prompts they decided ``num_pairs`` pairs, ``num_wrong`` of them against the label, and left
    ``num_undecided`` undecided; ``num_unlabelled`` other pairs that they decided have no label. ``num_complete``
    prompts have all pairs decided. ``num_judged`` pairs of the bench have verdicts of LLMs; with these a decided pair
    counts as ``effective_labels``.
    """

    num_prompts: int
    num_pairs: int
    num_wrong: int
    num_undecided: int
    num_unlabelled: int
    num_complete: int
    num_judged: int
    effective_labels: float


class LabelErrorSummary(Record, frozen=True, kw_only=True):
    """The label error and what follows from it; all null with the reason in ``why``.

    With ``relabelled`` pairs, ``label`` is the share of wrong ones among them, and ``person`` and ``most`` are null: it
    needs no assumption on how people err. ``model`` is then the accuracy on all pairs. ``exact_match``: what a perfect
    model reaches on prompts of several pairs, and ``exact_distance`` what this model lacks; without relabelled pairs
    from the ``num_whole`` prompts all of whose pairs have equally many answers, two or more.

    ``num_pairs`` bench pairs have an answer, ``num_unanswered`` have none and are in no value. ``num_twice`` pairs have
    answers of two people or more, with a label or not. ``num_tied`` answers were ties and count as none.
    ``num_overruled`` labels are against most answers: many of them show that the labels were made elsewhere. Of
    ``num_settled_alone`` pairs only the settled answers are there, as in exports of aligned answers. ``num_stated``:
    the cases that a ``bench.toml`` states the label error of, where the values are its own; 0 where they are not.

    ``person``: the error of one answer. ``label``: of the labels if people err independently, ``most`` if all errors
    are on coin tosses. ``perfect``: 1 - ``label``. ``model``: the accuracy on these pairs; ``distance``: what it lacks.
    """

    num_people: int = 0
    num_pairs: int = 0
    num_unanswered: int = 0
    num_twice: int = 0
    num_tied: int = 0
    num_overruled: int = 0
    num_settled_alone: int = 0
    num_whole: int = 0
    num_stated: int = 0
    relabelled: RelabelledLabels | None = None
    why: str | None = None
    person: MeansByCategory | None = None
    label: MeansByCategory | None = None
    most: MeansByCategory | None = None
    perfect: MeansByCategory | None = None
    model: MeansByCategory | None = None
    distance: MeansByCategory | None = None
    exact_match: MeansByCategory | None = None
    exact_distance: MeansByCategory | None = None


def estimate(resampled: ResampledBench) -> LabelErrorSummary | None:
    """Estimate the label error, or take the one that the bench states; null for a bench without evidence on labels."""
    bench = resampled.bench
    if bench.relabelled is not None:
        return _from_relabelled(resampled, bench.relabelled)
    is_right = bench.values.better > bench.values.worse
    answered = None
    if bench.columns.judged:
        counts = people_errors(bench.columns, is_right, resampled.blocks, seed=resampled.seed)._asdict()
        estimated = [counts.pop(name) for name in ("errors", "prompts")]
        means = [_means(each) for each in estimated if each is not None]
        answered = replace(LabelErrorSummary(**counts), **{name: each for part in means for name, each in part.items()})
    if bench.stated is not None and (answered is None or answered.label is None):
        return _as_stated(resampled, bench.stated, answered or LabelErrorSummary())
    return answered


def _as_stated(resampled: ResampledBench, stated: StatedLabelError, counted: LabelErrorSummary) -> LabelErrorSummary:
    """Return the label error that the bench states, and the distance of the headline to a perfect model.

    Errors of labels lower the accuracy: taking the two for independent makes the interval of the distance wider.
    """
    headline, independent = resampled.accuracy, np.zeros(0)
    means = {
        "label": MeansByCategory(**stated.label.estimates(), by_category={}),
        "most": MeansByCategory(**stated.most.estimates(), by_category={}),
        "model": MeansByCategory(macro=headline.macro, micro=headline.micro, by_category={}),
    }
    label = means["label"]
    means["perfect"] = MeansByCategory(
        macro=complement_of(label.macro), micro=complement_of(label.micro), by_category={}
    )
    means["distance"] = MeansByCategory(
        macro=distance_to_perfect(label.macro, headline.macro, independent, independent),
        micro=distance_to_perfect(label.micro, headline.micro, independent, independent),
        by_category={},
    )
    if stated.exact_match is not None:
        exact = means["exact_match"] = MeansByCategory(**stated.exact_match.estimates(), by_category={})
        if resampled.exact_match is not None:
            of_model = resampled.exact_match
            means["exact_distance"] = MeansByCategory(
                macro=distance_to_perfect(complement_of(exact.macro), of_model.macro, independent, independent),
                micro=distance_to_perfect(complement_of(exact.micro), of_model.micro, independent, independent),
                by_category={},
            )
    return replace(counted, why=None, num_stated=stated.items, **means)


def _from_relabelled(resampled: ResampledBench, again: RelabelledPairs) -> LabelErrorSummary:
    """Estimate the label error from labels that better judges made again."""
    bench, columns = resampled.bench, resampled.bench.columns
    labels = labels_of_bench(columns, again)
    against = _contradictions(bench)
    rows = resampled.rows[columns.prompt]
    is_right = bench.values.better > bench.values.worse
    pairs = RelabelledBench(rows, labels.is_checked, labels.is_wrong, against, is_right)
    prompts = pairs.by_prompt()
    by_pair = relabelled_shares(resampled.blocks, pairs)
    is_plural = len(prompts.prompt) < len(rows)
    by_prompt = relabelled_shares(resampled.blocks, prompts) if is_plural else None
    relabelled = RelabelledLabels(
        num_prompts=again.num_prompts,
        num_pairs=int(labels.is_checked.sum()),
        num_wrong=int(labels.is_wrong.sum()),
        num_undecided=labels.num_undecided,
        num_unlabelled=labels.num_unlabelled,
        num_complete=int(prompts.is_checked.sum()),
        num_judged=int((~np.isnan(against)).sum()),
        effective_labels=1.0 if by_pair is None else by_pair.effective_labels,
    )
    if by_pair is None:
        return LabelErrorSummary(relabelled=relabelled, why=NOT_RELABELLED)
    means = _means(by_pair)
    headline = resampled.accuracy
    means["model"] = replace(means["model"], macro=headline.macro, micro=headline.micro)
    exact = {} if by_prompt is None else _means(by_prompt)
    means |= {f"exact_{name}": exact[part] for name, part in (("match", "perfect"), ("distance", "distance")) if exact}
    return replace(LabelErrorSummary(relabelled=relabelled), **means)


def _contradictions(bench: ScoredBench) -> Floats:
    """Return the share of the verdicts of LLMs on each pair that contradict its label, NaN without one; (pair,)."""
    against = np.full(len(bench.columns.prompt), np.nan)
    answers = first_answers(bench.columns.judged, "llm")
    label_of = labels_of(bench.columns, answers)
    is_labelled = label_of >= 0
    pair, votes = label_of[is_labelled], answers.votes[is_labelled]
    is_second = bench.columns.better[pair] > bench.columns.worse[pair]
    contrary = np.where(is_second, *votes.T)
    against[pair] = contrary / votes.sum(axis=1)
    return against


def _means(errors: LabelErrors | RelabelledShares | WholePrompts) -> dict[str, MeansByCategory]:
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
    for title, means in (
        ("label_error", summary.label),
        ("perfect_model", summary.perfect),
        ("best_exact_match", summary.exact_match),
    ):
        if means is not None:
            yield means_row(word(title), means)


def panels(summary: LabelErrorSummary) -> Iterator[Panel]:
    """Yield the table of label errors: the means, and each of several categories; and that of exact match."""
    error, most, perfect, model = summary.label, summary.most, summary.perfect, summary.model
    distance = summary.distance
    if error is None or perfect is None or model is None or distance is None:
        return
    errors = (error,) if most is None else (error, most)
    columns = ("group", "label_error", "interval", *(() if most is None else ("label_error_most", "interval")),
               "perfect_model", "accuracy_with_answers", "distance_to_perfect", "interval",
               "relabelled_pairs" if most is None else "pairs_with_two_answers")  # fmt: skip
    cells = [
        (
            name,
            *(cell for each in errors for cell in PERCENT.cells(of(each))),
            *(percent(of(each).value) for each in (perfect, model)),
            *(points(of(distance).value), points_spread(of(distance))),
            count(of(error).n),
        )
        for name, of in _lines(error, word("all_with_answers"))
    ]
    note = "note_relabelled" if most is None else "note_label_error"
    yield Panel(word("label_error"), None, (Grouped("", table(columns, cells)),), note)
    exact, lacking = summary.exact_match, summary.exact_distance
    if exact is not None and lacking is not None:
        number = "answered_whole" if summary.relabelled is None else "complete_prompts"
        columns = ("group", "best_exact_match", "interval", "distance_to_perfect", "interval", number)
        cells = [
            (
                name,
                *PERCENT.cells(of(exact)),
                *(points(of(lacking).value), points_spread(of(lacking))),
                count(of(exact).n),
            )
            for name, of in _lines(exact, word("all_with_labels"))
        ]
        note = "note_exact_match_by_people" if summary.relabelled is None else "note_best_exact_match"
        yield Panel(word("best_exact_match"), None, (Grouped("", table(columns, cells)),), note)


def _lines(means: MeansByCategory, title: str) -> Iterator[tuple[str, Callable[[MeansByCategory], Estimate]]]:
    """Yield the name of each line of a table with the estimate that it shows; ``title`` is that of the first."""
    yield title, lambda each: each.micro
    if len(means.by_category) > 1:
        yield word("mean_with_answers"), lambda each: each.macro
        for name in means.by_category:
            yield category_word(name), lambda each, name=name: each.by_category[name]


def sentences(model: str, summary: LabelErrorSummary) -> Iterator[Sentence]:
    """Yield the label error in words."""
    if summary.label is None or summary.perfect is None or summary.distance is None:
        return
    error, perfect = summary.label.micro, summary.perfect.micro
    values = {
        "model": model,
        "error": percent(error.value),
        "interval": spread(error),
        "perfect": percent(perfect.value),
        **_gap_in_words(summary.distance.micro),
    }
    if (again := summary.relabelled) is not None:
        numbers = {"pairs": again.num_pairs, "prompts": again.num_prompts, "undecided": again.num_undecided}
        if again.num_wrong:
            numbers["wrong"] = again.num_wrong
        key = "say_relabelled" if again.num_wrong else "say_relabelled_none_wrong"
        yield Sentence(key, values | {name: count(number) for name, number in numbers.items()})
        if again.effective_labels > 1:
            yield Sentence("say_relabelled_judge", {"effective": decimal(again.effective_labels, 2)})
    elif summary.most is not None:
        most = summary.most.micro
        least = percent(None if most.value is None else 1 - most.value)
        values |= {"most": percent(most.value), "most_interval": spread(most), "least": least}
        yield Sentence("say_label_error", values)
        if summary.num_stated:
            yield Sentence("say_stated_label_error", {"cases": count(summary.num_stated)})
    if summary.exact_match is not None and summary.exact_distance is not None:
        exact = summary.exact_match.micro
        values = {"model": model, "exact": percent(exact.value), "interval": spread(exact)}
        key = "say_exact_match_by_people" if summary.relabelled is None else "say_best_exact_match"
        yield Sentence(key, values | _gap_in_words(summary.exact_distance.micro))


def _gap_in_words(distance: Estimate) -> dict[str, str]:
    ends, is_above = (distance.value, distance.low, distance.high), distance.value is not None and distance.value < 0
    if is_above:
        ends = (ends[0], ends[2], ends[1])
    factor, side = (-100, "above_perfect") if is_above else (100, "below_perfect")
    value, low, high = (decimal(None if end is None else factor * end, 1) for end in ends)
    return {"distance": value, "side": word(side), "gap": f"{low} \N{HORIZONTAL ELLIPSIS} {high}"}


def ceiling(summary: LabelErrorSummary) -> BenchCeiling | None:
    """Return what a perfect model reaches; None without a label error."""
    if summary.perfect is None:
        return None
    return BenchCeiling(
        accuracy=summary.perfect.macro,
        least=None if summary.most is None else complement_of(summary.most.macro),
        exact_match=None if summary.exact_match is None else summary.exact_match.macro,
    )


MEASURE = Measure(
    order=55,
    summary=LabelErrorSummary,
    estimate=estimate,
    text=TEXT,
    rows=rows,
    panels=panels,
    sentences=sentences,
    ceiling=ceiling,
)
