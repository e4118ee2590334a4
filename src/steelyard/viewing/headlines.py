"""The headline of a finished run: the one number that people look for first, by stage.

Only the fields that the headline needs are decoded: a folder may hold thousands of records of 100 kB.
"""

from collections.abc import Callable, Iterator, Mapping
from typing import Any, NamedTuple

import msgspec

from steelyard.evaluation.tables import DASH, count, decimal, percent, points, spread, word
from steelyard.judging.token_use import TokenUse
from steelyard.judging.verdicts import VerdictCounts
from steelyard.report.page import COMMA
from steelyard.report.run_records import last_part
from steelyard.statistics.intervals import Estimate


class RunHeadline(NamedTuple):
    """A number in bold and what it is, with its interval; and the model, empty where the stage has none."""

    value: str = ""
    about: str = ""
    model: str = ""


class _CasesUsed(msgspec.Struct, frozen=True):
    num_in: int = 0
    num_used: int = 0


class RunOverview(msgspec.Struct, frozen=True):
    """What the list of runs needs of a ``run.json``."""

    stage: str
    config: msgspec.Raw = msgspec.Raw(b"{}")
    counts: _CasesUsed = _CasesUsed()
    summary: msgspec.Raw = msgspec.Raw(b"{}")
    seconds: float = 0.0


class _Settings(msgspec.Struct):
    model: Any = None


class _EvaluationHeadline(msgspec.Struct):
    accuracy: Estimate
    model: str = ""
    bench: str = ""
    overall: Estimate | None = None


class _HeldOut(msgspec.Struct):
    accuracy: float
    num_pairs: int


class _Trained(msgspec.Struct):
    final_loss: float
    held_out: _HeldOut | None = None


class _Conflicts(msgspec.Struct):
    ratio: float | None
    num_judgments: int


class _ConflictsOfAll(msgspec.Struct):
    overall: _Conflicts


class _Resolved(msgspec.Struct):
    conflicts: _ConflictsOfAll


class _Outcomes(VerdictCounts, frozen=True, forbid_unknown_fields=False):
    pass


class _Judged(msgspec.Struct):
    judge: str
    judges: dict[str, _Outcomes]
    tokens: dict[str, TokenUse]


class _Written(msgspec.Struct):
    num_responses: int


class _Sampled(msgspec.Struct):
    models: dict[str, _Written]
    tokens: dict[str, TokenUse]


class _RecordedModel(msgspec.Struct):
    name: str


class _Compared(msgspec.Struct):
    models: tuple[_RecordedModel, ...]
    bench: str = ""


class _Difference(msgspec.Struct):
    absolute: Estimate


class _ByLanguage(msgspec.Struct):
    mean: Estimate
    languages: dict[str, msgspec.Raw]
    baseline_language: str = ""
    model: str = ""
    drop: _Difference | None = None


class _Arm(msgspec.Struct):
    name: str
    accuracy: Estimate


class _Experiment(msgspec.Struct):
    arms: tuple[_Arm, ...]


class _Board(msgspec.Struct):
    rows: tuple[_RecordedModel, ...]
    bench: str = ""


class _Scored(msgspec.Struct):
    model: str
    num_responses: int


class _Supervised(msgspec.Struct):
    num_strict: int
    num_strict_kept: int


class _Parts(msgspec.Struct):
    parts: dict[str, int]


class _Groups(msgspec.Struct):
    num_prompts: int
    num_comparisons: int


class _Described(msgspec.Struct):
    overall: _Groups


class _Converted(msgspec.Struct):
    from_kind: str
    to_kind: str
    num_written: int


class _Backbone(msgspec.Struct):
    num_weights: int


class _Reported(msgspec.Struct):
    runs: dict[str, str]


def _evaluated(run: _EvaluationHeadline) -> RunHeadline:
    estimate, title = (run.accuracy, "accuracy") if run.overall is None else (run.overall, "bench_overall")
    about = f"{word(title)}{COMMA}{spread(estimate)}"
    return RunHeadline(percent(estimate.value), f"{about} · {run.bench}" if run.bench else about, last_part(run.model))


def _trained(run: _Trained) -> RunHeadline:
    loss = f"{word('view_final_loss')} {decimal(run.final_loss)}"
    if run.held_out is None:
        return RunHeadline(decimal(run.final_loss), word("view_final_loss"))
    about = f"{word('held_out_accuracy')}{COMMA}n = {count(run.held_out.num_pairs)}{COMMA}{loss}"
    return RunHeadline(percent(run.held_out.accuracy), about)


def _resolved(run: _Resolved) -> RunHeadline:
    overall = run.conflicts.overall
    about = f"{word('conflict_ratio')}{COMMA}{count(overall.num_judgments)} {word('judgments')}"
    return RunHeadline(percent(overall.ratio), about)


def _judged(run: _Judged) -> RunHeadline:
    judge = run.judges[run.judge]
    noun = word("view_ratings" if judge.ratings else "view_verdicts")
    about = COMMA.join([noun, *_tokens_and_cost(run.tokens)])
    return RunHeadline(count(judge.num_given), about, last_part(run.judge))


def _sampled(run: _Sampled) -> RunHeadline:
    number = sum(model.num_responses for model in run.models.values())
    return RunHeadline(count(number), COMMA.join([word("view_written"), *_tokens_and_cost(run.tokens)]))


def _tokens_and_cost(tokens: Mapping[str, TokenUse]) -> Iterator[str]:
    """Yield the number of all tokens, and their cost where every chat has a price."""
    costs = [use.cost for use in tokens.values()]
    yield f"{count(sum(use.prompt + use.reply for use in tokens.values()))} {word('view_tokens')}"
    if costs and all(cost is not None for cost in costs):
        yield f"{word('view_cost')} {decimal(sum(cost or 0.0 for cost in costs), 2)}"


def _compared(run: _Compared) -> RunHeadline:
    best = run.models[0].name if run.models else DASH
    return RunHeadline(count(len(run.models)), f"{word('view_models_best')} {best} · {run.bench}")


def _by_language(run: _ByLanguage) -> RunHeadline:
    # The mean is over the languages that are compared with the baseline language.
    num_others = len(run.languages.keys() - {run.baseline_language})
    about = f"{word('view_mean_of')} {count(num_others)} {word('view_languages')}{COMMA}{spread(run.mean)}"
    if run.drop is not None:
        difference = run.drop.absolute
        lost = None if difference.value is None else -difference.value
        baseline = f"{word('view_against')} {run.baseline_language} {word('view_against_after')}"
        about += f"{COMMA}{baseline} {points(lost)}"
    return RunHeadline(percent(run.mean.value), about, last_part(run.model))


def _experiment(run: _Experiment) -> RunHeadline:
    best = max(run.arms, key=lambda arm: arm.accuracy.value or 0.0, default=None)
    if best is None:
        return RunHeadline()
    about = f"{word('accuracy')}{COMMA}{spread(best.accuracy)} · {best.name}"
    return RunHeadline(percent(best.accuracy.value), f"{about}{COMMA}{word('view_best_of')} {count(len(run.arms))}")


def _board(run: _Board) -> RunHeadline:
    best = run.rows[0].name if run.rows else DASH
    return RunHeadline(count(len(run.rows)), f"{word('view_models_best')} {best} · {run.bench}")


def _scored(run: _Scored) -> RunHeadline:
    return RunHeadline(count(run.num_responses), word("view_responses"), last_part(run.model))


def _supervised(run: _Supervised) -> RunHeadline:
    share = run.num_strict_kept / run.num_strict if run.num_strict else None
    about = f"{word('view_strict_kept')}{COMMA}{count(run.num_strict_kept)} / {count(run.num_strict)}"
    return RunHeadline(percent(share), about)


def _parts(run: _Parts) -> RunHeadline:
    return RunHeadline(" / ".join(map(count, run.parts.values())), " / ".join(run.parts))


def _described(run: _Described) -> RunHeadline:
    about = f"{word('prompts')}{COMMA}{count(run.overall.num_comparisons)} {word('described_comparisons')}"
    return RunHeadline(count(run.overall.num_prompts), about)


def _converted(run: _Converted) -> RunHeadline:
    title = word("convert_num_cases" if run.to_kind == "cases" else "convert_num_rows")
    return RunHeadline(count(run.num_written), f"{title} · {run.from_kind} → {run.to_kind}")


def _backbone(run: _Backbone) -> RunHeadline:
    return RunHeadline(count(run.num_weights), word("view_weights"))


def _reported(run: _Reported) -> RunHeadline:
    return RunHeadline(count(len(run.runs)), word("view_runs_shown"))


_BY_STAGE: dict[str, tuple[type[Any], Callable[[Any], RunHeadline]]] = {
    "evaluate": (_EvaluationHeadline, _evaluated),
    "train": (_Trained, _trained),
    "resolve": (_Resolved, _resolved),
    "judge": (_Judged, _judged),
    "sample": (_Sampled, _sampled),
    "compare": (_Compared, _compared),
    "languages": (_ByLanguage, _by_language),
    "leaderboard": (_Board, _board),
    "ablate": (_Experiment, _experiment),
    "sweep": (_Experiment, _experiment),
    "score": (_Scored, _scored),
    "supervise": (_Supervised, _supervised),
    "split": (_Parts, _parts),
    "describe": (_Described, _described),
    "convert": (_Converted, _converted),
    "backbone": (_Backbone, _backbone),
    "report": (_Reported, _reported),
}


_UNITS = {
    "debias": "view_pairs_kept",
    "filter-study": "view_verdicts_used",
    "prompts": "view_prompts_kept",
    "clean": "view_responses_kept",
    "ablate": "view_runs",
    "sweep": "view_runs",
}
"""The word for what a stage counts, where these are not cases."""


def headline_of(run: RunOverview) -> RunHeadline:
    """Return the headline of a finished run; of a stage without one, and of a foreign summary, what it used."""
    kind, headline = _BY_STAGE.get(run.stage, (None, None))
    if kind is not None and headline is not None:
        try:
            shown = headline(msgspec.json.decode(run.summary, type=kind, strict=False))
        except (msgspec.DecodeError, UnicodeDecodeError, RecursionError):
            shown = _counted(run)
    else:
        shown = _counted(run)
    return shown if shown.model else shown._replace(model=_model_setting(run.config))


def _counted(run: RunOverview) -> RunHeadline:
    unit = word(_UNITS.get(run.stage, "view_cases_used"))
    return RunHeadline(count(run.counts.num_used), f"{word('view_of')} {count(run.counts.num_in)} {unit}")


def _model_setting(config: msgspec.Raw) -> str:
    """Return the model that the settings name, as a training records it; empty without one."""
    try:
        model = msgspec.json.decode(config, type=_Settings).model
    except (msgspec.DecodeError, UnicodeDecodeError, RecursionError):
        return ""
    return last_part(model) if isinstance(model, str) else ""
