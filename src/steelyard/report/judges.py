"""The judges on the page: which agrees least with the others and since when, its contradictions, and preferences."""

from collections.abc import Iterator, Mapping, Sequence

from steelyard.core.types import Case
from steelyard.evaluation.tables import (
    DASH,
    DECIMAL,
    PERCENT,
    Figure,
    Grouped,
    Panel,
    Sentence,
    ShownItem,
    Table,
    count,
    isolate,
    p_relation,
    p_value,
    percent,
    points,
    points_spread,
    spread,
    table,
    word,
)
from steelyard.evaluation.vega import Dot, interval_rows, share_axis
from steelyard.ranking.judge_reliability import JudgeReliability, PanelReliability
from steelyard.ranking.judge_summary import JudgeQuality, JudgeSummary
from steelyard.ranking.resolution import ResolveSummary
from steelyard.report.items import cases_by_key, example_texts
from steelyard.report.judgment_sections import agreement_table, author_figure, bias_panels, judge_table, kind_word
from steelyard.report.page import Section
from steelyard.statistics.intervals import Estimate

MOST_ROWS = 20
"""Number of judges that a table or figure shows; ``--json`` has all of them."""
_MOST_NAMED, _EXAMPLES_A_JUDGE, _JUDGES_WITH_EXAMPLES = 3, 2, 3
_NEUTRAL = 0.5


def judges_section(summaries: Mapping[str, ResolveSummary], cases: Mapping[str, Sequence[Case]]) -> Section:
    """Return what each run of ``resolve`` says about its judges; ``cases`` have the texts of examples."""
    panels: list[Panel] = []
    sentences: list[Sentence] = []
    for name, summary in summaries.items():
        prefix = f"{isolate(name)} · " if len(summaries) > 1 else ""
        panels += [panel._replace(title=prefix + panel.title) for panel in judge_panels(summary, cases)]
        of_run = f" ({name})" if len(summaries) > 1 else ""
        sentences += [_of_run(sentence, of_run) for sentence in judge_sentences(summary)]
    return Section("judges", (), tuple(panels), tuple(sentences))


def judge_sentences(summary: ResolveSummary) -> tuple[Sentence, ...]:
    """Return which judges stand out and since when, or that none does; then constant ones, and LLMs beside people."""
    panel = summary.reliability
    if panel is None or len(panel.judges) < 2:
        return ()
    worst = [judge for judge in panel.judges if judge.stands_out]
    sentences = [
        _standing_out("say_worst_judge" if judge is worst[0] else "say_next_judge", judge, panel)
        for judge in worst[:_MOST_NAMED]
    ] or [_nobody(panel)]
    if len(worst) > _MOST_NAMED:
        sentences.append(Sentence("say_more_judges_stand_out", {"number": count(len(worst) - _MOST_NAMED)}))
    changed = sorted((judge for judge in panel.judges if judge.change), key=_rise)
    sentences += [_change(judge) for judge in changed[:_MOST_NAMED]]
    constant = [judge for judge in panel.judges if judge.constant]
    sentences += [
        Sentence(f"say_constant_{judge.constant}", {"judge": judge.judge}) for judge in constant[:_MOST_NAMED]
    ]
    beside_people = [(judge.with_people, judge.judge) for judge in panel.judges if judge.with_people is not None]
    if beside_people:
        agreement, name = min(beside_people, key=lambda pair: (pair[0].value or 0.0, pair[1]))
        sentences.append(Sentence("say_with_people", {"judge": name, **_estimate(agreement)}))
    return tuple(sentences)


def _of_run(sentence: Sentence, name: str) -> Sentence:
    """Return the sentence with the name of the run behind that of the judge."""
    judge = sentence.values.get("judge")
    return sentence if judge is None else sentence._replace(values={**sentence.values, "judge": judge + name})


def _standing_out(key: str, judge: JudgeReliability, panel: PanelReliability) -> Sentence:
    below = judge.below_median
    assert below is not None, "a judge that stands out was compared with the others"
    assert judge.p is not None, "and tested"
    values = {
        "judge": judge.judge,
        **_estimate(judge.agreement),
        "below": points(below.value).lstrip("+"),
        "spread": points_spread(below),
        "p": p_relation(judge.p),
        "judges": count(sum(tested.p is not None for tested in panel.judges)),
    }
    return Sentence(key, values)


def _nobody(panel: PanelReliability) -> Sentence:
    tested = [judge for judge in panel.judges if judge.p is not None]
    lowest = tested[0] if tested else panel.judges[0]
    values = {"judge": lowest.judge, **_estimate(lowest.agreement), "judges": count(len(tested or panel.judges))}
    return Sentence("say_no_judge_stands_out" if tested else "say_too_few_judges", values)


def _change(judge: JudgeReliability) -> Sentence:
    change = judge.change
    assert change is not None
    values = {
        "judge": judge.judge,
        "since": change.since,
        "before": percent(change.before.value),
        "after": percent(change.after.value),
        "prompts": count(change.before.n + change.after.n),
        "p": p_relation(change.p),
    }
    return Sentence("say_judge_declined" if _rise(judge) < 0 else "say_judge_improved", values)


def _rise(judge: JudgeReliability) -> float:
    change = judge.change
    return 0.0 if change is None else (change.after.value or 0.0) - (change.before.value or 0.0)


def _estimate(estimate: Estimate) -> dict[str, str]:
    return {"agreement": percent(estimate.value), "interval": spread(estimate), "pairs": count(estimate.n)}


def judge_panels(summary: ResolveSummary, cases: Mapping[str, Sequence[Case]]) -> Iterator[Panel]:
    """Yield the reliability of the judges, their preferences and their agreement; ``cases`` have the texts."""
    if summary.reliability is not None and len(summary.reliability.judges) > 1:
        judges = summary.reliability.judges
        tables = (Grouped("", reliability_table(judges[:MOST_ROWS])),)
        note = "note_judges_cut" if len(judges) > MOST_ROWS else "note_judges"
        yield Panel(word("worst_first"), reliability_figure(judges[:MOST_ROWS]), tables, note)
        if any(judge.change for judge in judges):
            yield Panel(word("changes"), None, (Grouped("", change_table(judges)),), "note_changes")
        if examples := tuple(contradictions(judges, cases)):
            yield Panel(word("contradictions"), None, (), "note_contradictions", examples)
    if summary.judges is not None:
        yield from _preferences(summary.judges)
        kinds = {kind_word(kind): quality for kind, quality in summary.judges.by_kind.items()}
        judges = sorted(summary.judges.by_judge.items(), key=lambda pair: (-pair[1].num_judgments, pair[0]))
        judges_by_name = dict(sorted(judges[:MOST_ROWS]))
        tables = (Grouped("kind", judge_table(kinds)), Grouped("judge", judge_table(judges_by_name)))
        if judges_by_name:
            yield Panel(word("judges_table"), None, tables)
    if summary.agreement is not None and (summary.agreement.judges or summary.agreement.kinds):
        yield Panel(word("agreement"), None, (Grouped("", agreement_table(summary.agreement, most=MOST_ROWS)),))
    if summary.authors and len(summary.authors.strengths) > 1:
        yield Panel(word("authors"), author_figure(summary.authors), (), "note_authors")


def reliability_figure(judges: Sequence[JudgeReliability]) -> Figure:
    """Return the agreement of each judge with the others, the lowest first."""
    dots = [Dot(judge.judge, "agreement_with_others", judge.agreement) for judge in judges]
    channel = {"axis": share_axis("agreement_with_others"), "scale": {"zero": False}}
    return Figure("figure_judges", interval_rows(dots, channel, row="judge", form=".1%", line=None, height=26))


def reliability_table(judges: Sequence[JudgeReliability]) -> Table:
    """Return a row for each judge: agreement, beyond chance, against the median of the others, and with people."""
    columns = ["judge", "agreement_with_others", "interval", "of_strict", "kappa", "interval", "below_median"]
    columns += ["interval", "p_corrected", "shared_pairs"]
    has_people = any(judge.with_people for judge in judges)
    if has_people:
        columns += ["with_people", "interval"]
    rows = []
    for judge in judges:
        below = judge.below_median
        people = PERCENT.cells(judge.with_people) if has_people else ()
        rows.append(
            (
                judge.judge,
                *PERCENT.cells(judge.agreement),
                percent(judge.agreement_of_strict.value),
                *DECIMAL.cells(judge.kappa),
                DASH if below is None else points(below.value),
                DASH if below is None else points_spread(below),
                p_value(judge.p),
                count(judge.num_pairs),
                *people,
            )
        )
    return table(columns, rows)


def change_table(judges: Sequence[JudgeReliability]) -> Table:
    """Return the changes of agreement, the largest fall first."""
    columns = ("judge", "since", "before_change", "interval", "after_change", "interval", "p_corrected", "prompts")
    rows = []
    for judge in sorted((judge for judge in judges if judge.change), key=_rise)[:MOST_ROWS]:
        change = judge.change
        assert change is not None
        cells = (*PERCENT.cells(change.before), *PERCENT.cells(change.after))
        rows.append((judge.judge, change.since, *cells, p_value(change.p), count(change.before.n + change.after.n)))
    return table(columns, rows)


def contradictions(judges: Sequence[JudgeReliability], cases: Mapping[str, Sequence[Case]]) -> Iterator[ShownItem]:
    """Yield pairs on which the least agreeing judges contradict most of the others, with both answers.

    A single other judge makes no majority: such pairs are examples only of a judge that stands out.
    """
    evidence = [
        (judge.judge, [pair for pair in judge.contradictions if judge.stands_out or pair.num_others > 1])
        for judge in judges
    ]
    several = [(name, pairs) for name, pairs in evidence if pairs][:_JUDGES_WITH_EXAMPLES]
    chosen = [(name, pair) for name, pairs in several for pair in pairs[:_EXAMPLES_A_JUDGE]]
    texts = cases_by_key(cases, {(pair.prompt, pair.language) for _, pair in chosen})
    for name, pair in chosen:
        case = texts.get((pair.prompt, pair.language))
        if case is None:
            continue
        prompt, (preferred, other) = example_texts(case, (pair.preferred, pair.other))
        others = {"against": count(pair.num_against), "others": count(pair.num_others), "judge": name}
        titles = (word("preferred_by_judge"), word("preferred_by_others"))
        answers = ((titles[0], preferred), (titles[1], other))
        yield ShownItem(pair.prompt, pair.language, Sentence("say_contradiction", others), prompt, answers)


def _preferences(summary: JudgeSummary) -> Iterator[Panel]:
    """Yield the preferences for a place or a length: a table of those that chance does not explain, and figures."""
    rows = preference_rows(summary.by_judge)
    if rows:
        columns = ("judge", "earlier_preferred", "interval", "longer_preferred", "interval")
        yield Panel(word("preferences"), None, (Grouped("", table(columns, rows[:MOST_ROWS])),), "note_preferences")
    elif any(quality.position.earlier.n for quality in summary.by_judge.values()):
        yield Panel(word("preferences"), None, (), "note_no_preferences")
    elif any(quality.length.longer.n for quality in summary.by_judge.values()):
        # Verdicts of both orders together have no place: what single replies prefer is in the section of the judging.
        yield Panel(word("preferences"), None, (), "note_no_length_preferences")
    yield from bias_panels(summary.by_kind)


def preference_rows(judges: Mapping[str, JudgeQuality]) -> list[tuple[str, ...]]:
    """Return a row for each judge with a marked preference, the strongest first; other cells are dashes."""
    marked = []
    for name, quality in judges.items():
        biases = (quality.position.earlier, quality.length.longer)
        if any(map(_is_marked, biases)):
            cells = [cell for bias in biases for cell in PERCENT.cells(bias if _is_marked(bias) else None)]
            strength = max(abs((bias.value or _NEUTRAL) - _NEUTRAL) for bias in biases if _is_marked(bias))
            marked.append((strength, (name, *cells)))
    return [row for _, row in sorted(marked, key=lambda pair: (-pair[0], pair[1]))]


def _is_marked(bias: Estimate) -> bool:
    """Return whether the interval excludes no preference."""
    return bias.low is not None and bias.high is not None and not bias.low <= _NEUTRAL <= bias.high
