"""Judgments: let LLMs judge, resolve conflicts into rankings, and filter verdicts."""

from collections.abc import Iterator
from pathlib import Path
from typing import TYPE_CHECKING

from steelyard.cli.forecast_lines import forecast_lines, status_lines
from steelyard.cli.options import (
    BATCH_OPTIONS,
    CASES,
    MODEL_SETTINGS,
    ONLY,
    SERVER_SETTINGS,
    SettingOption,
    StageArgument,
    StageOption,
    complete_model,
    in_panel,
)
from steelyard.cli.output import (
    next_line,
    report_step,
)
from steelyard.cli.verb import StageVerb

if TYPE_CHECKING:
    from steelyard.judging.forecast import JudgeForecast
    from steelyard.judging.run_status import JudgeStatus


def _unfinished(result: "JudgeForecast | JudgeStatus", out: Path) -> Iterator[str]:
    """Yield the forecast of a run, or how far it has come."""
    yield from forecast_lines(result) if result.kind == "forecast" else status_lines(result.status, out)


JUDGE = StageVerb(
    "judge",
    """Let a language model compare the responses of a case file.

    Every pair is shown in both orders; verdicts that disagree are a tie. Replies are stored as they come: an
    interrupted run resumes, and sends no request twice. OUT/cases.jsonl has the cases with the verdicts added.

    Example: `steelyard judge cases.jsonl --chat openai_compatible --base-url http://localhost:8000/v1
    --chat-model Qwen2.5-7B-Instruct --style qwen --out judged`

    `--dry-run` forecasts requests, tokens, money and hours, by the replies so far if there are any. The same
    command goes on after a limit or an interruption (docs/howto/judge.md). A panel is `--config panel.toml`
    with a [[members]] table for each judge. `--batch` is often at half the price (docs/howto/batch.md).
    """,
    (
        CASES,
        StageOption("out", "The folder for cases.jsonl and run.json."),
        SettingOption("chat.kind", "--chat", help="The kind of chat: see `steelyard list chats`."),
        *SERVER_SETTINGS,
        SettingOption("judge.style", config=("steelyard.plugins.judges.tasks", "PairwiseConfig")),
        SettingOption("task"),
        SettingOption("pairs"),
        SettingOption("num_pairs"),
        StageOption("scores", "With --pairs unsure: the score file that says which."),
        StageOption("calibrate", "People's labels: adds what the judge is worth."),
        SettingOption("repeats"),
        *in_panel(
            "Cost",
            StageOption("prices", "A TOML file of prices by model."),
            StageOption("max_cost", "Stop when the replies cost this much."),
            StageOption("max_failed", "Stop when more requests than this failed."),
            StageOption("max_hours", "Stop after so many hours."),
            StageOption("dry_run", "Forecast the cost; send and write nothing."),
            StageOption("tokenizer", "With --dry-run: a tokenizer's folder. Default: characters, by script."),
            StageOption("rate", "With --dry-run: requests a second."),
            StageOption("status", "Print how far the run in --out has come."),
        ),
        *in_panel("Batch files", *BATCH_OPTIONS),
        StageOption("allow_failed", "Finish although requests failed: no verdict."),
    ),
    _unfinished,
    next_step=lambda run, out: next_line("resolve", out / "cases.jsonl", "--out", "resolved"),
)


RESOLVE = StageVerb(
    "resolve",
    """Turn judgments into conflict-free rankings, and report the conflicts.

    Responses that beat one another in a circle share a tier; a tier is what no remaining response beats. The judgments
    stay as they are: only `ranking` is new. A case without judgments keeps the ranking it has.

    The table says what share of the judgments, and of the strict ones, the rankings do not keep; in how many prompts
    that happens; and what share of all response pairs is ordered. Judges and kinds are measured on their own graphs.

    Example: `steelyard resolve cases.jsonl --out resolved --only kind=human --only kind=llm --aggregate majority`
    """,
    (
        CASES,
        StageOption("out", "The folder for cases.jsonl and run.json."),
        ONLY,
        SettingOption("aggregate"),
        StageOption("engine", "local, or ray: on a cluster (RAY_ADDRESS names one)."),
        StageOption("workers", "The number of processes. Default: one for each core, for large files."),
    ),
    next_step=report_step("shows the conflicts"),
)


SUPERVISE = StageVerb(
    "supervise",
    """Let a reward model trained on human judgments filter those of an LLM (distant supervision).

    Policies: `agree` keeps a strict verdict if the model's margin for it is above 0 and at least `--min-margin`, and
    drops ties;
    `cycles` drops only what closes a cycle, the pairs with the smallest margin first; `weight` drops
    nothing and lists each pair with the model's belief in it as its weight.

    OUT/cases.jsonl has what is kept, ranked again; manifest.jsonl has each dropped judgment with its rule. A supervisor
    may not judge prompts that it was trained on.

    With --calibration-cases, the threshold is the smallest margin at which the kept verdicts are right as often as
    --min-precision asks. That file needs judgments by people and by the LLM on the same pairs.

    Example: `steelyard supervise llm.jsonl --model my-rm --out supervised --min-margin 0.5`

    Example: `steelyard supervise llm.jsonl --model my-rm --out calibrated --calibration-cases held_out.jsonl
    --min-precision 0.9`

    Example: `steelyard supervise llm.jsonl --scores scored/scores.jsonl --out acyclic --policy cycles`
    """,
    (
        StageArgument("cases", "The case file with the judgments to filter."),
        StageOption("out", "The folder for cases.jsonl and manifest.jsonl."),
        StageOption("model", "The supervisor: a model's folder, or a kind.", complete=complete_model),
        StageOption("scores", "The supervisor's scores, instead of --model."),
        SettingOption("policy"),
        SettingOption("min_margin"),
        SettingOption("keep_ties"),
        StageOption("calibration_cases", "Held-out cases judged by people, for the margin."),
        StageOption("calibration_scores", "The supervisor's scores of those cases, for --scores."),
        SettingOption("min_precision"),
        SettingOption("confidence"),
        StageOption("train_cases", "The supervisor's training cases: it judges none."),
        ONLY,
        *MODEL_SETTINGS,
    ),
)


RATERS = StageVerb(
    "raters",
    """Estimate how reliable each rater of cases is, people and models, from prompts that several of them judged.

    Accuracy is the probability that a strict verdict on two random responses has the right direction, with its 95%
    interval; the share of ties is estimated beside it. No truth is needed: who contradicts good raters is less
    reliable. Errors that all raters share are not seen, so that models which err alike look good together; `--only
    kind=human` leaves them out. An estimate needs 10 answers to shared prompts, and more than half of the rater's: of
    several answers of a rater to one prompt it can use one.

    Example: `steelyard raters judged.jsonl`

    Example: `steelyard raters judged.jsonl --only kind=human --out rated`
    """,
    (
        StageArgument("cases", "Case files, folders or quoted patterns.", metavar="CASES"),
        StageOption("out", "The folder for raters.md and run.json. Default: the terminal alone."),
        ONLY,
    ),
    next_step=report_step("shows them"),
)


DEBIAS = StageVerb(
    "debias",
    """Balance training pairs: as many whose better answer is longer as whose better answer is shorter.

    The larger side is thinned out at random; pairs of equal length stay. `--by markdown` counts marks of Markdown
    instead, `--by author` balances every two authors. The pairs that stay are listed in OUT/cases.jsonl for training.

    Balanced counts alone do not show that a bias is gone: with --scores the model's accuracy is measured before and
    after, on all pairs and on those of about equal length (10 %, or beside --scores `--set length_tolerance=0.05`).

    Example: `steelyard debias resolved/cases.jsonl --out debiased --within language`

    Example: `steelyard debias resolved/cases.jsonl --out debiased --scores scored/scores.jsonl`
    """,
    (
        StageArgument("cases", "The case file with rankings or pairs."),
        StageOption("out", "The folder for cases.jsonl and run.json."),
        SettingOption("by"),
        SettingOption("within"),
        SettingOption("tokenizer"),
        StageOption("scores", "Scores of a model, to show its accuracy before and after."),
        SettingOption("pairs"),
        SettingOption("seed"),
    ),
)


FILTER_STUDY = StageVerb(
    "filter_study",
    """Measure how precise a judge's verdicts are on your data once a reward model has filtered them.

    A reward model is trained on people's judgments and scores only prompts that it was not trained on. For each
    threshold on its margin, the study reports how many verdicts remain and how often they agree with people, compared
    with length and chance at equal coverage. Whether models trained on the filtered verdicts are more accurate is an
    ablation: `steelyard run` with a table of `human` and `llm` cases (docs/howto/ablate.md).

    Example: `steelyard filter-study judged.jsonl --judge gpt-4 --out studied`

    Example: `steelyard filter-study judged.jsonl --judge gpt-4 --out frozen --model features
    --set model.path=Qwen/Qwen2.5-0.5B --set model.cache=features`
    """,
    (
        StageArgument("cases", "The case file, judged by people and by the judge."),
        SettingOption("judge", is_required=True),
        StageOption("out", "The folder for filter_study.json, filter_study.svg, verdicts.jsonl and run.json."),
        StageOption("model", "The supervisor, a kind that learns from people's judgments: ngram or features."),
    ),
)


VERBS = (JUDGE, RESOLVE, SUPERVISE, DEBIAS, FILTER_STUDY, RATERS)
