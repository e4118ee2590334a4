"""Evaluations: accuracy with baselines and groups, all other measures, and the distributions of rewards."""

from collections.abc import Iterator, Sequence

import msgspec

from steelyard.core.types import JsonObject
from steelyard.evaluation.measures.accuracy import GroupResult, Named
from steelyard.evaluation.prediction_powered import PPISummary
from steelyard.evaluation.summary import EvaluationSummary
from steelyard.evaluation.tables import Panel, Sentence, percent, with_level, word
from steelyard.report.evaluation_sections import (
    accuracy_section,
    best_baseline,
    evaluation_cards,
    evaluation_sentences,
    headline_estimate,
    lead_line,
    measures_section,
)
from steelyard.report.failures import ModelFailures, failure_sentences
from steelyard.report.few_labels import few_labels_section, few_labels_sentences
from steelyard.report.page import COMMA, CardGroup
from steelyard.report.rewards import rewards_section
from steelyard.report.run_records import bench_files, last_part
from steelyard.statistics.intervals import Estimate
from steelyard.views.records import flat_row
from steelyard.views.view import HeadlineRule, PageSources, RunHeadline, StageContents, StageRun, View, report_step


def _sentences(run: StageRun[EvaluationSummary]) -> Iterator[Sentence]:
    yield from few_labels_sentences(run.name, run.summary)
    yield from evaluation_sentences(run.name, run.summary)


def _panels(run: StageRun[EvaluationSummary], sources: PageSources) -> Iterator[Panel]:
    summaries = {run.name: run.summary}
    if (few_labels := few_labels_section(summaries, ())) is not None:
        yield from few_labels.panels
    yield from accuracy_section([Named(run.name, run.summary)], ()).panels
    yield from measures_section(summaries, ()).panels


def _contents(runs: Sequence[StageRun[EvaluationSummary]], sources: PageSources) -> StageContents:
    evidence = [run.evidence for run in runs]
    summaries = {run.name: run.summary for run in runs}
    benches = _bench_names(runs)
    compared = [
        Named(run.name, run.summary, benches[run.name], best_baseline(run.summary.model, run.summary.baselines))
        for run in runs
    ]
    few_labels = few_labels_section(summaries, evidence)
    accuracy = accuracy_section(compared, evidence)
    by_people = () if few_labels is None else (Sentence("say_labels_of_people_alone", {}),)
    return StageContents(
        sections=(
            *((few_labels,) if few_labels is not None else ()),
            accuracy._replace(sentences=by_people),
            measures_section(summaries, evidence),
            rewards_section(sources.items, evidence),
        ),
        cards=tuple(
            CardGroup(
                model.name,
                evaluation_cards(model.name, summaries[model.name]),
                (
                    *few_labels_sentences(model.name, summaries[model.name])[:1],
                    *_with_failures(evaluation_sentences(model.name, summaries[model.name]), model),
                ),
                headline_estimate(summaries[model.name]).value,
                lead_line(summaries[model.name]),
            )
            for model in sources.failures.models
        ),
    )


def _bench_names(runs: Sequence[StageRun[EvaluationSummary]]) -> dict[str, str]:
    """Return the name of the bench of each run; other files of an equal name show their folder, else the run."""
    benches: dict[tuple[str, ...], tuple[str, str, str]] = {}
    keys: dict[str, tuple[str, ...]] = {}
    for run in runs:
        files = bench_files(run.source.run)
        folders = dict.fromkeys(last_part(file.path.replace("\\", "/").rpartition("/")[0]) for file in files)
        name = run.summary.bench
        keys[run.name] = (name, *(file.sha256 for file in files))
        benches.setdefault(keys[run.name], (name, f"{COMMA.join(folders)}/{name}", f"{name} ({run.source.name})"))
    names = {
        key: next((name for name in choices if sum(name in other for other in benches.values()) == 1), choices[-1])
        for key, choices in benches.items()
    }
    return {name: names[key] for name, key in keys.items()}


def _with_failures(sentences: tuple[Sentence, ...], model: ModelFailures) -> tuple[Sentence, ...]:
    """Return the result in words, and after its first sentence where the model fails."""
    return (*sentences[:1], *failure_sentences(model), *sentences[1:])


def _records(summary: EvaluationSummary) -> Iterator[JsonObject]:
    """Yield the headline, each baseline with the model's lead, and each category, language and subset."""
    yield {"by": "model", "name": summary.model} | _accuracy_row(summary)
    for name, baseline in summary.baselines.items():
        yield {"by": "baseline", "name": name} | _accuracy_row(baseline) | flat_row(baseline.difference, "lead")
    groups = {"category": summary.by_category, "language": summary.by_language, "subset": summary.subsets}
    for by, results in groups.items():
        for name, result in (results or {}).items():
            yield {"by": by, "name": name} | _accuracy_row(result)
    for name, section in (summary.sections or {}).items():
        yield {"by": "section", "name": name} | flat_row(section, "accuracy")


def _accuracy_row(result: GroupResult[Estimate]) -> JsonObject:
    exact = {} if result.exact_match is None else flat_row(result.exact_match, "exact_match")
    return flat_row(result.accuracy, "accuracy") | exact


class _EvaluationHeadline(msgspec.Struct):
    accuracy: Estimate
    model: str = ""
    bench: str = ""
    overall: Estimate | None = None
    prediction_powered: PPISummary | None = None


def _evaluated(run: _EvaluationHeadline) -> RunHeadline:
    estimate, title = (run.accuracy, "accuracy") if run.overall is None else (run.overall, "bench_overall")
    about = f"{word(title)}{COMMA}{with_level(estimate)}"
    if run.prediction_powered is not None:
        estimate, alone = run.prediction_powered.ranked().estimate, estimate
        by_people = f"{word('card_few_alone')} {percent(alone.value)}"
        about = COMMA.join((word(title), word("card_few_both"), with_level(estimate), by_people))
    return RunHeadline(percent(estimate.value), f"{about} · {run.bench}" if run.bench else about, last_part(run.model))


VIEW = View(
    10, "evaluate", EvaluationSummary, "accuracy", _sentences, _panels,
    records=_records, headline=HeadlineRule(_EvaluationHeadline, _evaluated),
    contents=_contents, lead=1, title=lambda summary: last_part(summary.model),
    next_step=report_step("shows where it fails"),
)  # fmt: skip
