"""Trainings: the loss as it was and smoothed, accuracy on held-out prompts, and what the length limit removed."""

from collections.abc import Iterator, Sequence
from pathlib import Path

import msgspec

from steelyard.core.remedies import Command, Remedy
from steelyard.core.types import Run
from steelyard.evaluation.tables import DASH, Grouped, Panel, Sentence, count, decimal, isolate, percent, table, word
from steelyard.ranking.pairs import TIES
from steelyard.report.page import COMMA, Section
from steelyard.report.sources import curve_of
from steelyard.report.training_curves import held_out_figure, loss_figure
from steelyard.training.config import LengthSummary, RatingFit, TrainingSummary
from steelyard.views.view import HeadlineRule, NextStep, PageSources, RunHeadline, StageContents, StageRun, View


def _contents(runs: Sequence[StageRun[TrainingSummary]], sources: PageSources) -> StageContents:
    """Return loss and held-out accuracy over the steps of all trainings."""
    curves = {run.name: curve_of(run.source) for run in runs}
    loss, held_out = loss_figure(curves), held_out_figure(curves)
    panels = [Panel(word("loss"), loss, (), "note_loss")] if loss else []
    panels += [Panel(word("held_out_accuracy"), held_out, (), "note_held_out")] if held_out else []
    panels.append(_numbers_panel(runs))
    sentences = tuple(sentence for run in runs for sentence in _sentences(run))
    return StageContents((Section("training", tuple(run.evidence for run in runs), tuple(panels), sentences),))


def _panels(run: StageRun[TrainingSummary], sources: PageSources) -> Iterator[Panel]:
    """Yield the numbers of one training, for tables outside the page."""
    yield _numbers_panel([run])


def _numbers_panel(runs: Sequence[StageRun[TrainingSummary]]) -> Panel:
    """Return a table with a row for each training. Ratings and held-out accuracy have columns where a run has them."""
    has_ratings = any(run.summary.num_ratings for run in runs)
    has_held_out = any(run.summary.held_out is not None for run in runs)
    rows: list[list[str]] = []
    for run in runs:
        training, held_out = run.summary, run.summary.held_out
        row = [isolate(run.name), count(training.num_steps), count(training.num_prompts), count(training.num_pairs)]
        row += [count(training.num_ratings)] if has_ratings else []
        row.append(decimal(training.final_loss))
        if has_held_out:
            row += [DASH, DASH] if held_out is None else [percent(held_out.accuracy), count(held_out.num_pairs)]
        rows.append(row)
    columns = ["loss_run", "training_steps", "training_prompts", "training_pairs"]
    columns += ["training_ratings"] if has_ratings else []
    columns += ["training_loss", *(("held_out_accuracy", "training_held_out_pairs") if has_held_out else ())]
    return Panel(word("training_numbers"), None, (Grouped("", table(columns, rows)),))


def _sentences(run: StageRun[TrainingSummary]) -> tuple[Sentence, ...]:
    """Return the numbers of a training in words."""
    training = run.summary
    values = {
        "steps": count(training.num_steps),
        "pairs": count(training.num_pairs),
        "prompts": count(training.num_prompts),
        "loss": decimal(training.final_loss),
    }
    name = "say_training"
    if training.num_ratings:
        values["ratings"] = count(training.num_ratings)
        name = "say_training_both" if training.num_pairs else "say_training_ratings"
    sentences = [Sentence(name, values), *_share_sentences(run), *_length_sentences(training.length)]
    held_out = training.held_out
    if held_out is not None:
        gaps = {"accuracy": percent(held_out.accuracy), "pairs": count(held_out.num_pairs)}
        sentences.append(Sentence("say_held_out", gaps))
        sentences += _fit_sentences(held_out.ratings)
    return tuple(sentences)


def _fit_sentences(fit: RatingFit | None) -> Iterator[Sentence]:
    """Yield the agreement of rewards and held-out ratings, where the loss reads ratings."""
    if fit is None:
        return
    values = {
        "ratings": count(fit.num_ratings),
        "error": decimal(fit.mean_squared_error),
        "variance": decimal(fit.variance),
    }
    if fit.pearson is None or fit.spearman is None:
        yield Sentence("say_rating_error", values)
        return
    values |= {"pearson": decimal(fit.pearson), "spearman": decimal(fit.spearman)}
    if fit.interval is None:
        yield Sentence("say_rating_fit", values)
        return
    low, high = map(decimal, fit.interval)
    yield Sentence("say_rating_fit_interval", {**values, "low": low, "high": high})


def _share_sentences(run: StageRun[TrainingSummary]) -> Iterator[Sentence]:
    """Yield the share of the data's pairs and prompts that were used, where some were not, and ties beside them."""
    training, length = run.summary, run.summary.length
    if not length.num_pairs:  # ratings alone
        return
    if (training.num_pairs, training.num_prompts) != (length.num_pairs, length.num_prompts):
        values = {
            "pair_share": percent(training.share_of_pairs_kept),
            "pairs": count(length.num_pairs),
            "prompt_share": percent(training.num_prompts / max(length.num_prompts, 1)),
            "prompts": count(length.num_prompts),
        }
        yield Sentence("say_kept_share", values)
    if ties := run.source.run.counts.noted.get(TIES):
        yield Sentence("say_ties_beside", {"number": count(ties)})


def _length_sentences(length: LengthSummary) -> list[Sentence]:
    """Return what the length limit removed from the training data; nothing where all of it fits."""
    if not length.num_too_long:
        return []
    values = {
        "limit": count(length.max_length),
        "answers": count(length.num_too_long),
        "answer_share": percent(length.num_too_long / length.num_responses),
        "pairs": count(length.num_pairs_over),
        "pair_share": percent(length.num_pairs_over / max(length.num_pairs, 1)),
        "prompts": count(length.num_prompts_over),
        "prompt_share": percent(length.num_prompts_over / max(length.num_prompts, 1)),
    }
    return [Sentence("say_length_cut" if length.is_cut else "say_length_lost", values)]


class _HeldOut(msgspec.Struct):
    accuracy: float
    num_pairs: int


class _Trained(msgspec.Struct):
    final_loss: float
    held_out: _HeldOut | None = None


def _trained(run: _Trained) -> RunHeadline:
    loss = f"{word('view_final_loss')} {decimal(run.final_loss)}"
    if run.held_out is None:
        return RunHeadline(decimal(run.final_loss), word("view_final_loss"))
    about = f"{word('held_out_accuracy')}{COMMA}n = {count(run.held_out.num_pairs)}{COMMA}{loss}"
    return RunHeadline(percent(run.held_out.accuracy), about)


def _evaluation(run: Run[TrainingSummary], out: Path) -> NextStep:
    """Return the evaluation on the test cases beside the training's."""
    cases = Path(run.inputs["cases"].path)
    test = cases.with_name("test.jsonl")
    bench = str(test if test.exists() else "TEST.jsonl")
    trained_on = (Remedy("train_cases", str(cases)),) if test.exists() else ()
    changes = (Remedy("bench", bench), Remedy("model", str(out)), *trained_on, Remedy("out", "evaluated"))
    return NextStep(Command("evaluate", (), changes))


VIEW = View(
    150, "train", TrainingSummary, "training", _sentences, _panels,
    headline=HeadlineRule(_Trained, _trained), contents=_contents, next_step=_evaluation,
)  # fmt: skip
