"""Judgments as functions: ask judges, resolve conflicts, filter an LLM's verdicts, balance pairs."""

from collections.abc import Mapping
from pathlib import Path
from typing import Any

from steelyard.api.arguments import checked
from steelyard.api.calls import Call, PathText, config_of, verb
from steelyard.api.cases import CasesLike
from steelyard.api.inputs import stored_batch
from steelyard.api.loaded import FunctionChat, JudgeFunction, ScoresLike, scores_file
from steelyard.api.outcomes import Outcome
from steelyard.core.errors import ConfigError
from steelyard.core.remedies import Advice, Remedy
from steelyard.core.types import JsonObject
from steelyard.io.cases import read_cases
from steelyard.io.verbs import refuse_ignored
from steelyard.judging import judge_card
from steelyard.judging.forecast import JudgeForecast
from steelyard.judging.judge_card import JudgeCards
from steelyard.judging.judging_summary import JudgingSummary


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
    requests wait, FailuresError where requests failed unless ``allow_failed``, or all of them did;
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
        common: JsonObject = {
            "scores": None if scores is None else scores_file(call, scores),
            "prices": None if prices is None else Path(prices),
            "chat": None if isinstance(judge, Mapping) else FunctionChat(judge),
        }
        if dry_run:
            counted_by = None if tokenizer is None else Path(tokenizer)
            return stage.forecast(call.file(cases), call.out, config, tokenizer=counted_by, rate=rate, **common)
        switch = Remedy("dry_run", value=True)
        needless = {"tokenizer": tokenizer is not None, "rate": rate is not None}
        refuse_ignored(needless, Advice("without ", switch), Advice("add ", switch))
        run = stage.judge(
            call.file(cases),
            call.out,
            config,
            calibrate=call.optional_file(calibrate, "calibrate"),
            max_cost=max_cost,
            max_failed=max_failed,
            max_hours=max_hours,
            batch=None if batch is None else stored_batch(call, "batch", batch),
            release_batch=release_batch,
            any_batch_model=any_batch_model,
            allow_failed=allow_failed,
            force=force,
            **common,
        )
        return Outcome.of(call, run)


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
