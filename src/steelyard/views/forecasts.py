"""The forecasts of runs that ask models, and how far such a run has come: lines for people, without a record."""

from collections.abc import Iterator
from pathlib import Path

from steelyard.core.remedies import FOLDER, Advice, Remedy
from steelyard.core.text import money_text, number_of
from steelyard.judging.forecast import Forecast, JudgeForecast
from steelyard.judging.run_status import JudgeStatus, RunStatus
from steelyard.judging.sampling_forecast import ModelForecast, SamplingForecast

_BATCH = Remedy("batch", FOLDER)
_STATE = "the rest is not sent yet"


def judging_lines(result: JudgeForecast | JudgeStatus, out: Path) -> Iterator[str]:
    """Yield what a run of a judge would send: requests, tokens, money and hours; or how far it has come."""
    if result.kind == "status":
        yield from _status_lines(result.status, out)
        return
    yield f"{number_of(result.num_used, 'prompt')} of {result.num_cases:,} would be judged; {_STATE}"
    if result.left_out:
        yield "  not judged: " + ", ".join(f"{reason} {number:,}" for reason, number in result.left_out.items())
    for model in result.models:
        yield from model_lines(model)


def model_lines(model: Forecast) -> Iterator[str]:
    """Yield the requests to one model: their number, tokens, money and hours."""
    repeated = f"; {model.num_repeated:,} more are equal to one of them" if model.num_repeated else ""
    yield f"{model.model}: {request_text(model.num_requests, model.num_answered)}{repeated}"
    shared = f"{model.shared_tokens:,} of them begin like an earlier request"
    most = at_most(model)
    yield f"  {model.prompt_tokens:,} prompt tokens (by {model.prompt_from}), {shared}"
    yield f"  {most}{model.reply_tokens:,} reply tokens (by {model.reply_from})"
    if model.cost is not None:
        saved = model.cached_saving
        saving = f"; {money_text(saved)} less if the server caches what is shared" if saved else ""
        yield f"  cost {most}{money_text(model.cost)}{saving}"
    if model.batch_cost is not None:
        yield Advice(f"  cost {most}{money_text(model.batch_cost)} in batch files: ", _BATCH)
    if model.hours is not None:
        yield f"  {model.hours:.2g} hours"


def sampling_forecast_lines(forecast: SamplingForecast) -> Iterator[str]:
    """Yield the requests, the tokens and the money of all models and of each."""
    models = forecast.models
    total = number_of(sum(model.num_requests for model in models.values()), "request")
    of = f"{number_of(len(models), 'model')} for {number_of(forecast.num_prompts, 'prompt')}"
    yield f"{total} to {of}; {_STATE}"
    for name, model in models.items():
        yield f"  {name}: {request_text(model.num_requests, model.num_answered)}"
        most = at_most(model)
        yield f"    {model.prompt_tokens:,} prompt tokens (by {model.prompt_from})"
        cost = "" if model.cost is None else f", cost {most}{money_text(model.cost)}"
        line = f"    {most}{model.reply_tokens:,} reply tokens (by {model.reply_from}){cost}"
        in_batches = f", {most}{money_text(model.batch_cost or 0)} in batch files ("
        yield line if model.batch_cost is None else Advice(line, in_batches, _BATCH, ")")


def request_text(num_requests: int, num_answered: int) -> str:
    """Return the requests to come, and those answered if there are any."""
    return number_of(num_requests, "request") + (f", {num_answered:,} answered already" if num_answered else "")


def at_most(model: Forecast | ModelForecast) -> str:
    """Return the words before an upper limit, where nothing is known of replies but how long they may be."""
    return "at most " if model.num_requests and model.reply_from == "their limit" else ""


def _status_lines(status: RunStatus, out: Path) -> Iterator[str]:
    """Yield how far a run has come, its cost so far and to come, and what continues it."""
    yield f"{out} is {status.state}{f': {status.problem}' if status.problem else ''}"
    for model in status.models:
        of = "" if model.num_requests is None else f" of {model.num_requests:,}"
        line = f"{model.model}: {model.num_done:,}{of} requests done, {model.num_failed:,} failed"
        yield f"{line}; {model.prompt_tokens:,} prompt tokens, {model.reply_tokens:,} reply tokens"
        if model.cost is not None:
            to_come = "" if model.cost_to_come is None else f", about {money_text(model.cost_to_come)} to come"
            yield f"  cost {money_text(model.cost)}{to_come}"
    for batch in status.batches:
        yield f"{batch.name}: {batch.num_waiting:,} of {batch.num_requests:,} requests wait since {batch.since}"
    if status.ends is not None:
        yield f"ends about {status.ends}"
    if status.command is not None:
        yield f"continues with: {status.command}"
