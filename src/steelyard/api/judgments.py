"""Judgments as functions: ask judges, resolve conflicts, filter an LLM's verdicts, balance pairs."""

from collections.abc import Mapping
from pathlib import Path
from typing import Any

from steelyard.annotation.case_answers import RatersSummary
from steelyard.api.arguments import checked
from steelyard.api.calls import Call, PathText, batch_path, config_of, verb
from steelyard.api.cases import CasesLike
from steelyard.api.loaded import FunctionChat, JudgeFunction, ModelLike, ScoresLike, scores_file, scoring_of
from steelyard.api.outcomes import Outcome
from steelyard.core.errors import ConfigError
from steelyard.core.types import JsonObject, Run
from steelyard.curation.data_checks import AuditSummary
from steelyard.curation.debiasing import DebiasSummary
from steelyard.curation.filter_study import FilterStudySummary
from steelyard.evaluation.supervisor import SupervisionSummary
from steelyard.io.cases import read_cases
from steelyard.judging import judge_card
from steelyard.judging.asking import JudgingSummary
from steelyard.judging.forecast import JudgeForecast
from steelyard.judging.judge_card import JudgeCards
from steelyard.judging.run_status import JudgeStatus
from steelyard.ranking.resolution import ResolveSummary


@verb("judge", foresees=("dry_run",))
def judge(
    cases: CasesLike,
    *,
    judge: JsonObject | JudgeFunction = {},  # noqa: B006 - never changed; the default of the setting
    scores: ScoresLike | None = None,
    calibrate: CasesLike | None = None,
    prices: PathText | None = None,
    max_cost: float | None = None,
    max_failed: int | None = None,
    max_hours: float | None = None,
    batch: PathText | None = None,
    release_batch: str | None = None,
    any_batch_model: bool = False,
    out: PathText | None = None,
    allow_failed: bool = False,
    dry_run: bool = False,
    tokenizer: PathText | None = None,
    rate: float | None = None,
    force: bool = False,
    **settings: Any,
) -> Outcome[JudgingSummary] | JudgeForecast:
    """Let a language model compare the responses of each case; its verdicts join the judgments of ``.cases``.

    ``chat`` is the model and where it is served, ``judge`` the style of the questions. ``judge`` may instead be a
    function from a question (a list of messages with ``role`` and ``content``) to the text of a reply, such as
    ``[[A]]`` for the answer shown first: it judges both orders, and what it raises is a failed request. ``pairs`` says
    which pairs are compared: ``random``, ``disputed``, or ``unsure`` by a model's ``scores``. ``calibrate`` has
    people's labels of some of the cases: ``summary.card`` compares the judge with them. With ``out`` every reply is
    stored there: after an interruption the same call continues. At ``max_cost``, by a file of ``prices`` or
    ``price``, at ``max_failed`` requests or after ``max_hours`` it stops with CeilingError. With ``batch``, a folder,
    it writes batch files there, and the next call reads the results that were put there; ``release_batch`` names one
    whose requests are then free, ``any_batch_model`` accepts the name of another model. Raises WaitingError while
    requests wait, ModelError where requests failed unless ``allow_failed``, and where the chat cannot be reached;
    EvidenceError where no case can be compared.

    With ``dry_run`` nothing is sent or written: the result has for each of ``models`` the requests, tokens, money and
    hours that are to come, by a ``tokenizer``'s folder or by characters, and at ``rate`` requests a second.

    >>> judged = sy.judge(cases, chat={"kind": "recorded", "path": "replies.jsonl"})
    >>> {judgment.verdict for case in judged.cases for judgment in case.judgments if judgment.kind == "llm"}
    {'tie'}
    >>> sy.judge(cases, chat={"kind": "recorded", "path": "replies.jsonl"}, dry_run=True).models[0].num_requests
    80
    >>> always_first = sy.judge(cases, judge=lambda messages: "[[A]]")
    >>> {judgment.verdict for case in always_first.cases for judgment in case.judgments if judgment.kind == "llm"}
    {'tie'}
    """
    from steelyard.stages import judge as stage

    with Call("judge", out) as call:
        if not isinstance(judge, Mapping) and not callable(judge):
            problem = f"judge is {type(judge).__name__}"
            raise ConfigError(problem, allowed="settings, or a function from messages to the text of a reply")
        style = judge if isinstance(judge, Mapping) else {}
        config = config_of(stage.Config, {**settings, "judge": style}, where="judge")
        result = stage.judge(
            call.file(cases),
            call.out,
            config,
            scores=None if scores is None else scores_file(call, scores),
            calibrate=call.optional_file(calibrate, "calibrate"),
            prices=None if prices is None else Path(prices),
            max_cost=max_cost,
            max_failed=max_failed,
            max_hours=max_hours,
            batch=batch_path(batch, release_batch, out),
            release_batch=release_batch,
            any_batch_model=any_batch_model,
            allow_failed=allow_failed,
            dry_run=dry_run,
            tokenizer=None if tokenizer is None else Path(tokenizer),
            rate=rate,
            chat=None if isinstance(judge, Mapping) else FunctionChat(judge),
            force=force,
        )
        assert not isinstance(result, JudgeStatus), "no status was asked for"
        return Outcome.of(call, result) if isinstance(result, Run) else result


@checked
def judge_cards(cases: CasesLike, people: CasesLike | None = None, *, seed: int = 0) -> JudgeCards:
    """Compare the LLM judges of cases with people's labels: agreement, correlation, biases, flips; a card for each.

    ``people``: cases with people's judgments, rankings or pairs; the cases themselves if null. `judge` makes the card
    of its own verdicts with ``calibrate``.

    >>> always_first = sy.judge(cases, judge=lambda messages: "[[A]]")
    >>> (card,) = sy.judge_cards(always_first, people=cases).cards
    >>> card.first_preferred.value, card.order_flips.value
    (1.0, 1.0)
    """
    with Call("judge_cards", None) as call:
        judged = call.file(cases)
        labelled = judged if people is None else call.file(people, "people")
        return judge_card.judge_cards(read_cases(judged), read_cases(labelled), seed=seed)


@verb("resolve")
def resolve(
    cases: CasesLike,
    *,
    out: PathText | None = None,
    workers: int | None = None,
    engine: str = "local",
    force: bool = False,
    **settings: Any,
) -> Outcome[ResolveSummary]:
    """Turn judgments into conflict-free rankings (CHEEMS, algorithm 1), and report the conflicts and the judges.

    ``only=["kind=human"]`` selects the judgments that count; cases to which none counts keep their ranking. The table
    of the result has the conflict ratio of all judgments and of each judge, kind, category and language.

    Raises RecordError for an inconsistent case, EvidenceError if ``only`` admits no judgment.

    >>> resolved = sy.resolve(cases, only=["kind=human"])
    >>> resolved.cases[0].ranking
    (('a',), ('b',))
    >>> resolved.summary.conflicts.overall.num_strict
    40
    """
    from steelyard.stages import resolve as stage

    with Call("resolve", out) as call:
        config = config_of(stage.Config, settings, where="resolve")
        run = stage.resolve(call.file(cases), call.out, config, workers=workers, engine=engine, force=force)
        return Outcome.of(call, run)


@verb("supervise")
def supervise(
    cases: CasesLike,
    *,
    model: ModelLike | None = None,
    scores: ScoresLike | None = None,
    calibration_cases: CasesLike | None = None,
    calibration_scores: ScoresLike | None = None,
    train_cases: CasesLike | None = None,
    out: PathText | None = None,
    force: bool = False,
    **settings: Any,
) -> Outcome[SupervisionSummary]:
    """Filter the judgments of LLMs and models with a reward model that was trained on people's (distant supervision).

    Give a ``model`` or its ``scores``. ``min_margin`` is the least margin for a verdict; ``calibration_cases``, which
    people and the judge judged alike, choose it by ``min_precision``. Dropped judgments are counted by rule.

    Raises EvidenceError for a margin that drops everything, ModelError for a supervisor that may not judge these cases.

    >>> judged = sy.simulate(num_prompts=48, seed=1)["llm"]
    >>> kept = sy.supervise(judged, model="longer", min_margin=1.0, any_language=True)
    >>> kept.counts.num_in == kept.counts.num_used + sum(kept.counts.dropped.values())
    True
    """
    from steelyard.stages import supervise as stage

    with Call("supervise", out) as call:
        path = call.file(cases)
        scoring = scoring_of(call, model, settings.pop("model_settings", None), [path])
        if scoring.scores is not None and (calibration_cases is not None or scores is not None):
            raise ConfigError(
                "a model that is an object scores these cases only", do="give scores= and calibration_scores="
            )
        run = stage.supervise(
            path,
            call.out,
            config_of(stage.Config, {**settings, "model": scoring.settings}, where="supervise"),
            model=scoring.model,
            scores=scoring.scores if scores is None else scores_file(call, scores),
            calibration_cases=call.optional_file(calibration_cases, "calibration_cases"),
            calibration_scores=None
            if calibration_scores is None
            else scores_file(call, calibration_scores, "calibration_scores"),
            train_cases=call.optional_file(train_cases, "train_cases"),
            builder=scoring.builder,
            force=force,
        )
        return Outcome.of(call, run)


@verb("debias")
def debias(
    cases: CasesLike,
    *,
    scores: ScoresLike | None = None,
    out: PathText | None = None,
    force: bool = False,
    **settings: Any,
) -> Outcome[DebiasSummary]:
    """Drop pairs at random until as many have the longer answer as better as have the shorter (or another feature).

    The pairs that stay are the ``pairs`` of ``.cases``; with ``scores`` a model's accuracy is measured before and
    after. Raises EvidenceError for cases without pairs, or in which none would stay.

    >>> rows = [{"prompt": f"{word}?", "chosen": word, "rejected": "no"} for word in ("a", "yes", "sure")]
    >>> sy.debias(rows).table[0]["before_num_more"], sy.debias(rows).table[0]["after_num_more"]
    (2, 1)
    """
    from steelyard.stages import debias as stage

    with Call("debias", out) as call:
        config = config_of(stage.Config, settings, where="debias")
        file = None if scores is None else scores_file(call, scores)
        return Outcome.of(call, stage.debias(call.file(cases), call.out, config, scores=file, force=force))


@verb("audit")
def audit(
    cases: CasesLike,
    *,
    scores: ScoresLike | None = None,
    out: PathText | None = None,
    force: bool = False,
    **settings: Any,
) -> Outcome[AuditSummary]:
    """Find data to check: labels that a model disputes, conflicts, duplicates and odd lengths. Nothing is changed.

    Character n-grams in folds judge the labels, or the ``scores`` of a model that was not trained on these prompts.
    ``.rows("disputed")`` are the disputed labels, the least probable first.

    >>> audited = sy.audit(cases)
    >>> audited.summary.num_conflicted
    0
    >>> len(audited.rows("disputed"))
    0
    """
    from steelyard.stages import audit as stage

    with Call("audit", out) as call:
        config = config_of(stage.Config, settings, where="audit")
        file = None if scores is None else scores_file(call, scores)
        return Outcome.of(call, stage.audit(call.file(cases), call.out, config, scores=file, force=force))


@verb("raters")
def raters(
    *cases: CasesLike, out: PathText | None = None, force: bool = False, **settings: Any
) -> Outcome[RatersSummary]:
    """Estimate how reliable each rater is, people and models, from prompts that several of them judged.

    Accuracy is the probability that a strict verdict on two random responses has the right direction; the share of ties
    is estimated beside it. Errors that all raters share are not seen. ``only={"kind": ["human"]}`` takes the judgments
    of people alone. Raises EvidenceError where no prompt has verdicts of two raters.

    >>> rated = sy.raters(sy.simulate(num_prompts=48, seed=1).cases)
    >>> rated.summary.raters[0].accuracy.value > 0.6
    True
    >>> rated.table.columns[:3]
    ('rater', 'kinds', 'num_answers')
    """
    from steelyard.stages import raters as stage

    with Call("raters", out) as call:
        paths = [call.file(each, f"cases-{number}") for number, each in enumerate(cases, 1)]
        config = config_of(stage.Config, settings, where="raters")
        return Outcome.of(call, stage.raters(paths, call.out, config, force=force))


@verb("filter_study")
def filter_study(
    cases: CasesLike, *, model: str = "ngram", out: PathText | None = None, force: bool = False, **settings: Any
) -> Outcome[FilterStudySummary]:
    """Measure how precise a judge's verdicts are once a reward model has filtered them.

    ``judge`` is the judge's name in the cases, ``model`` a kind that trains in seconds (``ngram``, ``features``).
    Raises ConfigError for an unknown judge, EvidenceError without people's judgments.

    >>> simulated = sy.simulate(num_prompts=48, seed=1)
    >>> judged = sy.merge(simulated.cases, simulated["llm"]).cases
    >>> study = sy.filter_study(judged, judge="simulated-llm-1")
    >>> study.summary.judge
    'simulated-llm-1'
    """
    from steelyard.stages import filter_study as stage

    with Call("filter_study", out) as call:
        config = config_of(stage.Config, settings, where="filter_study")
        return Outcome.of(call, stage.filter_study(call.file(cases), call.out, config, model=model, force=force))
