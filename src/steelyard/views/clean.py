"""Cleaned responses: how many break each rule, examples of every rule, and what was dropped by author and language."""

from collections.abc import Iterator, Mapping, Sequence
from pathlib import Path

from steelyard.core.text import number_of
from steelyard.evaluation.tables import (
    Grouped,
    Panel,
    Sentence,
    ShownItem,
    Table,
    count,
    decimal,
    isolate,
    language_word,
    percent,
    table,
    word,
)
from steelyard.evaluation.vega import ALERT, STRONG
from steelyard.report.bars import CountBar, count_bars
from steelyard.report.run_records import rule_word
from steelyard.responses.cleaning_summary import CleanPreview, CleanSummary, Dropped, RuleCounts
from steelyard.views.view import PageSources, StageRun, View, report_step


def _sentences(run: StageRun[CleanSummary]) -> Iterator[Sentence]:
    counts, summary = run.source.run.counts, run.summary
    num_dropped = counts.num_in - counts.num_used
    yield Sentence(
        "say_cleaned",
        {
            "run": run.name,
            "dropped": count(num_dropped),
            "responses": count(counts.num_in),
            "share": percent(num_dropped / max(1, counts.num_in)),
            "kept": count(counts.num_used),
            "masked": count(summary.num_masked),
        },
    )
    if summary.num_prompts_with_few:
        few, prompts = count(summary.num_prompts_with_few), count(summary.num_prompts)
        yield Sentence("say_few_left", {"run": run.name, "few": few, "prompts": prompts})


def _panels(run: StageRun[CleanSummary], sources: PageSources) -> Iterator[Panel]:
    summary, counts = run.summary, run.source.run.counts
    broken = sorted((rule for rule in summary.rules if rule.num_broken), key=lambda rule: -rule.num_broken)
    bars = [CountBar(word("kept"), counts.num_used, STRONG)]
    bars += [CountBar(rule_word(rule.rule), rule.num_broken, ALERT) for rule in broken]
    figure = count_bars("cleaning_rules", bars, total=counts.num_in)
    rules = Grouped("", table(("rule", "measures", "action", "limit", "broken", "dropped_first"), _rows(summary.rules)))
    yield Panel(word("cleaning_rules"), figure, (rules,), "note_cleaning_rules")
    for rule in broken:
        shown = tuple(_examples(rule))
        yield Panel(f"{word('examples')} · {rule_word(rule.rule)}", None, (), f"measures_{rule.rule}", shown)
    groups = (("author", summary.authors), ("language", summary.languages))
    tables = tuple(Grouped(key, _by_group(key, dropped)) for key, dropped in groups if len(dropped) > 1)
    if tables:
        yield Panel(word("dropped_by_group"), None, tables, "note_dropped_by_group")


def _rows(rules: Sequence[RuleCounts]) -> list[tuple[str, ...]]:
    return [
        (
            rule_word(rule.rule),
            word(f"measures_{rule.rule}", rule.measures),
            word(f"does_{rule.action}"),
            word("usual_length") if rule.limit is None else f"{rule.limit:g}",
            count(rule.num_broken),
            count(rule.num_first),
        )
        for rule in rules
    ]


def _examples(rule: RuleCounts) -> Iterator[ShownItem]:
    for example in rule.examples:
        about = {"figure": _figure(example.figure), "limit": _figure(example.limit)}
        sentence = Sentence("say_example_of_rule", about)
        title = f"{word('answer')} {isolate(example.response or '')}"
        yield ShownItem(example.prompt, example.language, sentence, example.prompt_text, ((title, example.text),))


def _figure(value: float | None) -> str:
    """Format a count without decimals, a share or a rate with two."""
    return decimal(value, 0 if value is not None and value == int(value) and value > 1 else 2)


def _by_group(key: str, groups: Mapping[str, Dropped]) -> Table:
    shown = language_word if key == "language" else str
    rows = [
        (
            shown(name),
            count(group.num_responses),
            count(group.num_dropped),
            percent(group.share),
        )
        for name, group in sorted(groups.items(), key=lambda item: -item[1].share)
    ]
    return table(("group", "responses", "dropped", "share"), rows)


def _preview(preview: CleanPreview, out: Path) -> Iterator[str]:
    """Yield what would be dropped by each rule, with examples."""
    summary, counts = preview.summary, preview.counts
    dropped, responses = counts.num_in - counts.num_used, number_of(counts.num_in, "response")
    yield f"{dropped:,} of {responses} would be dropped: nothing is written"
    for rule in sorted((rule for rule in summary.rules if rule.num_broken), key=lambda rule: -rule.num_broken):
        bound = "usual in its category and language" if rule.limit is None else f"{rule.limit:g}"
        yield f"  {rule.rule} ({rule.action}): {rule.num_broken:,}, {rule.measures}, limit {bound}"
        for example in rule.examples:
            text = " ".join(example.text.split())
            shown = text if len(text) <= _SHOWN_CHARACTERS else f"{text[:_SHOWN_CHARACTERS]} … {text[-30:]}"
            yield f"    {example.prompt} {example.response} ({example.figure:g}): {shown}"
    if summary.num_prompts_with_few:
        yield f"prompts with fewer than 2 responses: {summary.num_prompts_with_few:,} of {summary.num_prompts:,}"


_SHOWN_CHARACTERS = 90
VIEW = View(
    95,
    "clean",
    CleanSummary,
    "cleaning",
    _sentences,
    _panels,
    unit="view_responses_kept",
    next_step=report_step("shows examples of each rule"),
    unrecorded=_preview,
)
