"""The verb `judge`: language models compare the responses of a case file, and their verdicts join the evidence.

The questions are a plan (`steelyard.judging.judging_plan`). It has a forecast, and the run itself, whose requests
are sent or written to batch files (`steelyard.judging.judging_run`).
"""

from collections.abc import Callable
from contextlib import suppress
from math import inf
from pathlib import Path
from typing import NamedTuple

import msgspec

from steelyard.core.errors import ConfigError, FileError
from steelyard.core.protocols import Chat
from steelyard.core.types import Run
from steelyard.io.ledger import LEDGER_FILE, open_ledger, read_ledger
from steelyard.io.run_folder import Result, run_stage
from steelyard.io.verbs import (
    BATCH_OPTIONS,
    CASES,
    CEILINGS,
    SERVER_SETTINGS,
    Option,
    SettingOption,
    Verb,
    in_panel,
    settings,
)
from steelyard.judging.forecast import CountTokens, JudgeForecast, forecast_panel
from steelyard.judging.judge_card import check_people
from steelyard.judging.judged_cases import with_card, write_judged
from steelyard.judging.judging_plan import Config, JudgingPlan, choose_judges
from steelyard.judging.judging_run import SendingRules, ask_all, sending_rules
from steelyard.judging.judging_summary import JudgingSummary
from steelyard.judging.panel import JudgePanel, PanelChoice, asked_settings, build_panel
from steelyard.judging.run_status import JudgeStatus, replies_per_second, status_of
from steelyard.judging.token_use import Ceilings

_DEFAULT = Config()
_UNDECIDING = ("members", "price", "prefix_distance", "prime", "max_truncated")
"""Settings by which runs are not compared: an unfinished run goes on without them, or with others."""


class _Judging(NamedTuple):
    """One judging: the questions, the judges, how requests leave, and where the results go.

    ``calibrate``: the file of people's labels with which the judges are compared.
    """

    plan: JudgingPlan
    judges: PanelChoice
    rules: SendingRules
    calibrate: Path | None
    out: Path
    force: bool

    def panel(self) -> JudgePanel:
        """Build the judges, with their chats."""
        return build_panel(self.judges, name=self.plan.config.name, repeats=self.plan.config.repeats)


VERB = Verb(
    "Judgments",
    41,
    (
        CASES,
        Option("out", "The folder for cases.jsonl and run.json."),
        SettingOption("chat.kind", "chat", help="The kind of chat: see `steelyard list chats`."),
        *SERVER_SETTINGS,
        SettingOption("judge.style", config=("steelyard.plugins.judges.tasks", "PairwiseConfig")),
        *settings("task", "pairs", "num_pairs"),
        Option("scores", "With pairs `unsure`: the score file that says which."),
        Option("calibrate", "People's labels: adds what the judge is worth."),
        SettingOption("repeats"),
        *in_panel(
            "Cost",
            Option("prices", "A TOML file of prices by model."),
            *CEILINGS,
            Option("dry_run", "Forecast the cost; send and write nothing."),
            Option("tokenizer", "For the forecast: a tokenizer's folder. Default: characters, by script."),
            Option("rate", "For the forecast: requests a second."),
            Option("status", "Print how far the run in OUT has come.", in_python=False),
        ),
        *in_panel("Batch files", *BATCH_OPTIONS),
        Option("allow_failed", "Finish although requests failed: no verdict."),
    ),
    instead=(("status", "status"), ("dry_run", "forecast")),
)


def judge(
    cases: Path,
    out: Path,
    config: Config = _DEFAULT,
    *,
    scores: Path | None = None,
    calibrate: Path | None = None,
    prices: Path | None = None,
    max_cost: float | None = None,
    max_failed: int | None = None,
    max_hours: float | None = None,
    batch: Path | None = None,
    release_batch: str | None = None,
    any_batch_model: bool = False,
    allow_failed: bool = False,
    chat: Chat | None = None,
    force: bool = False,
) -> Run[JudgingSummary]:
    """Let a language model compare the responses of a case file.

    Every pair is shown in both orders; verdicts that disagree are a tie. Replies are stored as they come: an
    interrupted run resumes, and sends no request twice. OUT/cases.jsonl has the cases with the verdicts added.

    Example: `steelyard judge cases.jsonl --chat openai_compatible --base-url http://localhost:8000/v1
    --chat-model Qwen2.5-7B-Instruct --style qwen --out judged`

    ``dry_run`` forecasts requests, tokens, money and hours, by the replies so far if there are any. The same
    command goes on after a limit or an interruption (docs/howto/judge.md). A panel is ``config="panel.toml"``
    with a [[members]] table for each judge. ``batch`` is often at half the price (docs/howto/batch.md).

    Raises FailuresError where requests failed and ``allow_failed`` is not set (with it they are judgments without a
    verdict, for the reason ``failed``), or all of them did; CeilingError at a ceiling; WaitingError
    while requests of batch files wait; EvidenceError where no case has a comparison, or no label of people's.
    """
    ceilings = Ceilings(max_cost, max_failed, max_hours)
    judges = choose_judges(config, prices, chat, ceilings)
    rules = sending_rules(
        out,
        ceilings,
        batch=batch,
        release=release_batch,
        any_model=any_batch_model,
        allow_failed=allow_failed,
    )
    plan = JudgingPlan(cases, config, scores)
    plan.check()
    return _run(_Judging(plan, judges, rules, calibrate, out, force))


def check_settings(config: Config) -> None:
    """Raise what the settings alone are refused for; files of the judges may be made by other stages first."""
    with suppress(FileError):
        choose_judges(config, None, None)


def forecast(
    cases: Path,
    out: Path,
    config: Config = _DEFAULT,
    *,
    scores: Path | None = None,
    prices: Path | None = None,
    tokenizer: Path | None = None,
    rate: float | None = None,
    chat: Chat | None = None,
) -> JudgeForecast:
    """Return what `judge` would send: requests, tokens, money and hours. Nothing is sent or written.

    Tokens are counted by ``tokenizer``, a folder, or by characters, corrected by the replies in ``out``; hours at
    ``rate`` requests a second, or at the rate of an unfinished run there.
    """
    if rate is not None and not 0 < rate < inf:
        raise ConfigError(f"rate is {rate:g}", where="rate", allowed="a number of requests a second above 0")
    judges, plan = choose_judges(config, prices, chat), JudgingPlan(cases, config, scores)
    plan.check()
    count_tokens: CountTokens | None = None
    if tokenizer is not None:
        from steelyard.networks.token_counts import message_tokens

        count_tokens = message_tokens(tokenizer)
    # The ids of a million requests are on disk.
    with read_ledger(out / LEDGER_FILE) as ledger, open_ledger(None) as distinct:
        return forecast_panel(
            plan.planned,
            build_panel(judges, name=config.name, repeats=config.repeats),
            (lambda request: None) if ledger is None else ledger.known,
            count_tokens=count_tokens,
            requests_per_second=replies_per_second(out) if rate is None else rate,
            new_ids=distinct.new_ids,
        )


def status(out: Path) -> JudgeStatus:
    """Return how far the run in ``out`` has come, its cost so far and to come, and what continues it."""
    return JudgeStatus(status_of(out))


def _run(judging: _Judging) -> Run[JudgingSummary]:
    """Ask all questions that have no reply, by requests or batch files, and write the cases with the verdicts."""
    plan, calibrate = judging.plan, judging.calibrate

    def write(result: Result) -> None:
        if calibrate is not None:
            check_people(plan.cases, calibrate)
        with judging.rules.opened(result.path(LEDGER_FILE), judging.panel) as (panel, ledger):
            outcome = ask_all(plan, panel, ledger, judging.rules, result.folder)
            summary = write_judged(plan, panel, ledger, outcome.tokens, result)
        if plan.scores is not None:
            result.findings = plan.hash_findings(result.request.inputs)
        result.counts = outcome.case_counts(summary.judges[summary.judge].outcomes)
        if calibrate is not None:
            summary = with_card(summary, plan, result, calibrate)
        result.summary = summary

    return _recorded(judging, write)


def _recorded(judging: _Judging, write: Callable[[Result], None]) -> Run[JudgingSummary]:
    """Run within the folder, whose record names the settings and the files that decide the verdicts."""
    plan, judges = judging.plan, judging.judges
    config = msgspec.to_builtins(plan.config)
    config["chat"] = asked_settings(config["chat"])
    # `jury` has what of the members decides the verdicts; the others left out decide no request.
    settings = {key: value for key, value in config.items() if key not in _UNDECIDING} | {"jury": judges.settings()}
    files = {"cases": plan.cases, "scores": plan.scores, "calibrate": judging.calibrate}
    inputs = {name: path for name, path in files.items() if path is not None} | judges.inputs()
    return run_stage(
        judging.out,
        "judge",
        Run[JudgingSummary],
        write,
        config=settings,
        inputs=inputs,
        force=judging.force,
    )
