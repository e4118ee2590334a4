"""Data to check on the page: disputed labels, conflicts with their cycles, duplicates, and lengths of answers."""

import re
from collections.abc import Iterator, Mapping, Sequence
from itertools import pairwise
from pathlib import Path

from steelyard.annotation.case_answers import RatersSummary
from steelyard.core.remedies import Command, Remedy
from steelyard.core.types import Case, Run
from steelyard.curation.data_checks import (
    NGRAMS,
    AuditSummary,
    ConflictedPrompt,
    DisputedPair,
    DisputedPairs,
    Duplicates,
    Lengths,
)
from steelyard.evaluation.tables import (
    DASH,
    Figure,
    Grouped,
    Mark,
    Panel,
    Sentence,
    ShownItem,
    Table,
    count,
    isolate,
    percent,
    spread,
    table,
    word,
)
from steelyard.evaluation.vega import ALERT, STRONG, Spec, framed
from steelyard.report.items import Key, cases_by_key, example_texts
from steelyard.views.view import NextStep, PageSources, StageRun, View, report_step

MOST_ROWS = 20
"""Number of findings that a table shows; ``--json`` has up to 100."""
_MOST_WITHHELD = 3
"""The largest number of raters without an estimate whose reasons are sentences."""
_MOST_EXAMPLES = 4
"""Findings that are shown with their texts."""
_TOO_FEW = {
    "say_not_disputed": r"(?P<prompts>[\d,]+) prompts? ha(?:s|ve) an ordered pair, (?P<needed>[\d,]+) are needed",
    "say_withheld": r"an estimate needs (?P<needed>\d+) answers .*; it could use (?P<used>[\d,]+) of (?P<all>[\d,]+)",
}
"""The reasons for a missing result that have numbers, by the sentence."""


def _sentences(run: StageRun[AuditSummary]) -> tuple[Sentence, ...]:
    """Return the findings in words, those on labels first; a kind of finding that is absent has no sentence."""
    summary = run.summary
    sentences: list[Sentence] = []
    if (disputed := summary.disputed) is not None:
        values = {
            "suspects": count(disputed.num_suspects),
            "pairs": count(disputed.num_pairs),
            "confidence": percent(disputed.confidence),
            "accuracy": percent(disputed.accuracy.value),
            "interval": spread(disputed.accuracy),
            "model": word("baseline_ngrams") if disputed.model == NGRAMS else disputed.model,
        }
        sentences.append(Sentence("say_suspects" if disputed.num_suspects else "say_no_suspects", values))
    if summary.num_conflicted:
        numbers = {"conflicted": count(summary.num_conflicted), "prompts": count(summary.num_cases)}
        sentences.append(Sentence("say_conflicted_prompts", numbers))
    duplicates, lengths = summary.duplicates, summary.lengths
    findings = {
        "say_duplicate_prompts": (duplicates.num_prompts_in_groups, duplicates.num_prompt_groups),
        "say_equal_responses": (duplicates.num_equal_responses, duplicates.num_equal_and_ordered),
        "say_empty_responses": (lengths.num_empty, 0),
        "say_extreme_lengths": (lengths.num_extreme, 0),
    }
    sentences += [
        Sentence(key, {"number": count(number), "part": count(part)})
        for key, (number, part) in findings.items()
        if number
    ]
    needs_ranking = disputed is None and summary.num_unranked > 0
    if not sentences and not needs_ranking:
        sentences.append(Sentence("say_nothing_to_check"))
    elif summary.why_not_disputed:
        sentences.append(_reason_sentence("say_not_disputed", summary.why_not_disputed))
    if needs_ranking:
        sentences.append(Sentence("say_no_ranking_yet", {"number": count(summary.num_unranked)}))
    return (*sentences, *(_rater_sentences(summary.raters) if summary.raters else ()))


def _reason_sentence(key: str, why: str, **values: str) -> Sentence:
    """Return the sentence of a missing result with its reason: with numbers where too few are the reason."""
    if (too_few := re.fullmatch(_TOO_FEW[key], why)) is not None:
        return Sentence(f"{key}_few", {**values, **too_few.groupdict()})
    return Sentence(key, {**values, "why": why})


def _rater_sentences(summary: RatersSummary) -> Iterator[Sentence]:
    values = {
        "raters": count(len(summary.raters)),
        "answers": count(summary.num_answers),
        "shared": count(summary.num_shared),
        "cases": count(summary.num_cases),
    }
    yield Sentence("say_raters", values)
    rated = [row for row in summary.raters if row.accuracy.value is not None]
    if len(rated) > 1:
        worst = rated[-1]
        accuracy = {"accuracy": percent(worst.accuracy.value), "interval": spread(worst.accuracy)}
        yield Sentence("say_least_accurate", {"rater": worst.rater, **accuracy})
    withheld = [row for row in summary.raters if row.accuracy.value is None]
    for row in withheld[:_MOST_WITHHELD]:
        yield _reason_sentence("say_withheld", row.accuracy.why or "", rater=row.rater)
    if len(withheld) > _MOST_WITHHELD:
        yield Sentence("say_more_withheld", {"number": count(len(withheld) - _MOST_WITHHELD)})


def _panels(run: StageRun[AuditSummary], sources: PageSources) -> Iterator[Panel]:
    summary, cases = run.summary, sources.cases
    if summary.disputed is not None and summary.disputed.listed:
        tables = (Grouped("", disputed_table(summary.disputed.listed[:MOST_ROWS])),)
        examples = tuple(disputed_examples(summary.disputed, cases))
        yield Panel(word("disputed_labels"), None, tables, "note_disputed", examples)
    if summary.conflicted:
        tables = (Grouped("", conflicted_table(summary.conflicted[:MOST_ROWS])),)
        examples = tuple(conflicted_examples(summary.conflicted, cases))
        yield Panel(word("conflicted_prompts"), None, tables, "note_conflicted", examples)
    yield from _duplicate_panels(summary.duplicates, cases)
    if sum(summary.lengths.better) > 1:
        tables = (Grouped("", bin_table(summary.lengths)),)
        yield Panel(word("lengths"), length_figure(summary.lengths), tables, "note_lengths")
    if len(summary.lengths.authors) > 1:
        yield Panel(word("lengths_by_author"), None, (Grouped("", author_table(summary.lengths)),))
    if summary.lengths.odd:
        yield Panel(word("odd_lengths"), None, (Grouped("", odd_table(summary.lengths)),), "note_odd_lengths")
    if summary.raters is not None:
        yield Panel(word("rater_table"), None, (Grouped("", rater_table(summary.raters)),), "note_raters")


def disputed_table(pairs: Sequence[DisputedPair]) -> Table:
    """Return a row for each disputed label: its probability, and the judgments for and against it."""
    rows = [
        (
            pair.prompt,
            pair.language or DASH,
            pair.better,
            pair.worse,
            percent(pair.probability),
            count(pair.num_for),
            count(pair.num_against),
        )
        for pair in pairs
    ]
    columns = ("prompt", "language", "labelled_better", "labelled_worse", "label_probability")
    return table((*columns, "votes_for", "votes_against"), rows)


def disputed_examples(disputed: DisputedPairs, cases: Mapping[str, Sequence[Case]]) -> Iterator[ShownItem]:
    """Yield the labels that the model disputes most, with both answers."""
    pairs = disputed.listed[:_MOST_EXAMPLES]
    known = cases_by_key(cases, {(pair.prompt, pair.language) for pair in pairs})
    for pair in pairs:
        if (case := known.get((pair.prompt, pair.language))) is not None:
            prompt, (better, worse) = example_texts(case, (pair.better, pair.worse))
            about = Sentence("say_disputed", {"probability": percent(pair.probability)})
            answers = ((word("labelled_better"), better), (word("labelled_worse"), worse))
            yield ShownItem(pair.prompt, pair.language, about, prompt, answers)


def conflicted_table(prompts: Sequence[ConflictedPrompt]) -> Table:
    """Return a row for each prompt with conflicts: its share, and a shortest cycle."""
    rows = [
        (
            row.prompt,
            row.language or DASH,
            row.shown,
            percent(row.num_conflicting / row.num_judgments),
            count(row.num_conflicting),
            count(row.num_judgments),
        )
        for row in prompts
    ]
    return table(("prompt", "language", "cycle", "conflict_ratio", "conflicting", "judged"), rows)


def conflicted_examples(
    prompts: Sequence[ConflictedPrompt], cases: Mapping[str, Sequence[Case]]
) -> Iterator[ShownItem]:
    """Yield the most conflicting prompts with the answers of their cycle."""
    shown = prompts[:2]
    known = cases_by_key(cases, {(row.prompt, row.language) for row in shown})
    for row in shown:
        if (case := known.get((row.prompt, row.language))) is not None:
            names = list(dict.fromkeys(row.cycle))
            letters = [letter for letter in row.shown.split() if letter not in (">", "=")]
            prompt, texts = example_texts(case, names)
            answers = tuple(zip(letters, texts, strict=False))
            yield ShownItem(row.prompt, row.language, Sentence("say_cycle", {"cycle": row.shown}), prompt, answers)


def _duplicate_panels(duplicates: Duplicates, cases: Mapping[str, Sequence[Case]]) -> Iterator[Panel]:
    if duplicates.prompt_groups:
        groups = [group.prompts for group in duplicates.prompt_groups[:MOST_ROWS]]
        known = cases_by_key(cases, {group[0] for group in groups})
        rows = [
            (_first_words(known.get(group[0]), group[0]), group[0][1] or DASH, count(len(group)), _names(group))
            for group in groups
        ]
        tables = (Grouped("", table(("prompt", "language", "prompts", "prompt_ids"), rows)),)
        yield Panel(word("duplicate_prompts"), None, tables, "note_duplicate_prompts")
    if duplicates.equal_responses:
        rows = [
            (row.prompt, row.language or DASH, ", ".join(row.responses), word("yes") if row.is_ordered else word("no"))
            for row in duplicates.equal_responses[:MOST_ROWS]
        ]
        tables = (Grouped("", table(("prompt", "language", "responses", "is_ordered"), rows)),)
        yield Panel(word("equal_responses"), None, tables, "note_equal_responses")


def _first_words(case: Case | None, key: Key) -> str:
    text = key[0] if case is None else example_texts(case, ())[0]
    line = " ".join(text.split())
    return line if len(line) <= 80 else line[:80].rstrip() + " …"


def _names(keys: Sequence[Key]) -> str:
    shown = ", ".join(name for name, _ in keys[:4])
    return shown if len(keys) <= 4 else f"{shown} …"


def length_figure(lengths: Lengths) -> Figure:
    """Return the shares of better and of worse answers by length."""
    labels = _bin_names(lengths.edges)
    series = ((word("better_answers"), STRONG, lengths.better), (word("worse_answers"), ALERT, lengths.worse))
    used = [at for at in range(len(labels)) if lengths.better[at] + lengths.worse[at]]
    first, last = used[0], used[-1]
    values = [
        {"row": labels[at], "series": name, "share": numbers[at] / max(1, sum(numbers)), "n": numbers[at]}
        for name, _, numbers in series
        for at in range(first, last + 1)
    ]
    marks = tuple(Mark(name, colour, "square") for name, colour, _ in series)
    scale: Spec = {"domain": [mark.name for mark in marks], "range": [mark.colour for mark in marks]}
    bars: Spec = {
        "mark": {"type": "bar", "cornerRadiusEnd": 2},
        "encoding": {
            "x": {
                "field": "row",
                "type": "ordinal",
                "sort": labels,
                "axis": {"title": word("characters"), "labelAngle": 0, "labelOverlap": True, "grid": False},
            },
            "xOffset": {"field": "series", "sort": scale["domain"]},
            "y": {
                "field": "share",
                "type": "quantitative",
                "axis": {"format": ".0%", "title": word("share"), "tickCount": 5},
            },
            "color": {"field": "series", "type": "nominal", "scale": scale, "legend": None},
            "tooltip": [
                {"field": "row", "title": word("characters")},
                {"field": "series", "title": word("label")},
                {"field": "share", "title": word("share"), "format": ".1%"},
                {"field": "n", "title": "n", "format": ","},
            ],
        },
    }
    return Figure("figure_lengths", {**framed([bars], 220), "data": {"values": values}}, marks)


def _bin_names(edges: Sequence[int]) -> list[str]:
    """Return the names of the bins: 0, 1–9, …, 30,000 and more."""
    names = [f"{low:,}" if high == low + 1 else f"{low:,}{DASH}{high - 1:,}" for low, high in pairwise(edges)]
    return [*names, f"≥ {edges[-1]:,}"]


def rater_table(summary: RatersSummary) -> Table:
    """Return a row for each rater, with dashes for a missing estimate."""
    rows = [
        (
            isolate(row.rater),
            count(row.num_answers),
            percent(row.accuracy.value),
            DASH if row.accuracy.value is None else spread(row.accuracy),
            percent(row.ties.value),
            DASH if row.ties.value is None else spread(row.ties),
        )
        for row in summary.raters
    ]
    return table(("rater", "n", "rater_accuracy", "interval", "rater_ties", "interval"), rows)


def bin_table(lengths: Lengths) -> Table:
    """Return how many better and worse answers have a length in each bin."""
    numbers = zip(_bin_names(lengths.edges), lengths.better, lengths.worse, strict=True)
    rows = [(name, count(better), count(worse)) for name, better, worse in numbers if better or worse]
    return table(("characters", "better_answers", "worse_answers"), rows)


def author_table(lengths: Lengths) -> Table:
    """Return a row for each author of answers: their number, their median length, and how many are empty."""
    groups = lengths.authors[:MOST_ROWS]
    rows = [
        (
            group.author or word("no_author"),
            count(group.num_responses),
            count(round(group.median)),
            count(group.num_empty),
        )
        for group in groups
    ]
    return table(("author", "responses", "median_length", "empty_responses"), rows)


def odd_table(lengths: Lengths) -> Table:
    """Return a row for each empty response, and for each of an extreme length."""
    rows = [(row.prompt, row.language or DASH, row.response, count(row.length)) for row in lengths.odd[:MOST_ROWS]]
    return table(("prompt", "language", "response", "characters"), rows)


def _next_step(run: Run[AuditSummary], out: Path) -> NextStep:
    """Return `resolve`, where judgments have no ranking yet and neither labels nor raters were checked; else report."""
    if run.summary.num_unranked and run.summary.disputed is None and run.summary.raters is None:
        cases = run.inputs["cases"].path
        return NextStep(Command("resolve", (cases,), (Remedy("out", "resolved"),)), "makes the labels to check")
    return report_step("shows them")(run, out)


VIEW = View(
    85,
    "audit",
    AuditSummary,
    "data_to_check",
    _sentences,
    _panels,
    next_step=_next_step,
)
