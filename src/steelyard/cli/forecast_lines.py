"""What `--dry-run` and `judge --status` print: the forecast of a run, and how far it has come."""

from collections.abc import Iterator
from pathlib import Path
from typing import TYPE_CHECKING

from steelyard.core.text import number_of

if TYPE_CHECKING:
    from steelyard.judging.forecast import Forecast
    from steelyard.judging.run_status import RunStatus
    from steelyard.stages.judge import JudgeForecast


def forecast_lines(forecast: "JudgeForecast") -> Iterator[str]:
    """Yield what a run would send: requests, tokens, money and hours of each model."""
    yield f"{number_of(forecast.num_used, 'prompt')} of {forecast.num_cases:,} would be judged; nothing is sent"
    for model in forecast.models:
        yield from model_lines(model)


def model_lines(model: "Forecast") -> Iterator[str]:
    """Yield the requests to one model: their number, tokens, money and hours."""
    answered = f", {model.num_answered:,} answered already" if model.num_answered else ""
    repeated = f"; {model.num_repeated:,} more are equal to one of them" if model.num_repeated else ""
    yield f"{model.model}: {number_of(model.num_requests, 'request')}{answered}{repeated}"
    shared = f"{model.shared_tokens:,} of them begin like an earlier request"
    yield f"  {model.prompt_tokens:,} prompt tokens (by {model.prompt_from}), {shared}"
    yield f"  {model.reply_tokens:,} reply tokens (by {model.reply_from})"
    if model.cost is not None and model.least_cost is not None:
        yield f"  cost {model.cost:.2f}, {model.least_cost:.2f} if the server caches what is shared"
    if model.hours is not None:
        yield f"  {model.hours:.2g} hours"


def status_lines(status: "RunStatus", out: Path) -> Iterator[str]:
    """Yield how far a run has come, its cost so far and to come, and what continues it."""
    state = "has stopped" if status.state == "failed" else f"is {status.state}"
    yield f"{out} {state}{f': {status.problem}' if status.problem else ''}"
    for model in status.models:
        of = "" if model.num_requests is None else f" of {model.num_requests:,}"
        line = f"{model.model}: {model.num_done:,}{of} requests done, {model.num_failed:,} failed"
        yield f"{line}; {model.prompt_tokens:,} prompt tokens, {model.reply_tokens:,} reply tokens"
        if model.cost is not None:
            to_come = "" if model.cost_to_come is None else f", about {model.cost_to_come:.2f} to come"
            yield f"  cost {model.cost:.2f}{to_come}"
    if status.ends is not None:
        yield f"ends about {status.ends}"
    if status.command is not None:
        yield f"continues with: {status.command}"
