"""A pilot: some requests of a run, drawn at random, are sent first, and their replies forecast the others.

The replies stay in the ledger of the run, which goes on with them: nothing is paid for twice.
"""

import time
from collections.abc import Callable, Iterable
from pathlib import Path
from typing import Any

from steelyard.core.comparison import Comparison, Request
from steelyard.core.errors import CeilingError, ConfigError
from steelyard.core.remedies import Advice, Remedy
from steelyard.core.types import Case
from steelyard.io.ledger import Ledger
from steelyard.judging.asking import PricedChat, ask_requests, requests_of
from steelyard.judging.futile_requests import RequestCounts, refuse_failed
from steelyard.judging.panel import JudgePanel
from steelyard.judging.sampling import SHORTER, ResponseModels, new_samples

_FEWEST = 2


class PilotEnd(CeilingError):  # noqa: N818 - a run that stops as it was told to
    """The end of a pilot: the run stops with its forecast, and the same run without a pilot goes on."""

    def __init__(self, forecast: Any) -> None:
        super().__init__("the pilot is over", do="run the same without a pilot")
        self.forecast = forecast


def check_pilot(number: int | None, *, dry_run: bool, batch: Path | None = None) -> None:
    """Raise ConfigError for a pilot of too few requests to tell how they vary, and for one that may send nothing.

    ``batch``: the folder of batch files, with which nothing is sent.
    """
    if number is not None and number < _FEWEST:
        problem = f"a pilot of {number} does not tell how replies vary"
        raise ConfigError(
            problem, where="pilot", allowed=f"{_FEWEST} requests or more", do="20 are enough for most runs"
        )
    if number is not None and dry_run:
        raise ConfigError("a dry run sends nothing", where="pilot", do=Advice("leave out ", Remedy("dry_run")))
    if number is not None and batch is not None:
        do = Advice(
            "leave out ", Remedy("batch"), "; once the pilot is over, batch files go on with the other requests"
        )
        raise ConfigError("a pilot sends requests, and batch files send none", where="pilot", do=do)


def ask_pilot(
    panel: JudgePanel,
    comparisons: Callable[[], Iterable[Comparison]],
    ledger: Ledger,
    number: int,
    *,
    max_truncated: float,
    allow_failed: bool,
) -> float | None:
    """Ask every judge some questions, and return the requests a second; null where all had been answered before.

    Raises as `ask_judges`, and ModelError where requests failed unless ``allow_failed``.
    """
    started = time.monotonic()
    counts = ask_judges(panel, comparisons, ledger, number, max_truncated=max_truncated)
    if not allow_failed:
        refuse_failed(counts, ledger, without="a verdict")
    num_sent = sum(count.num_questions - count.num_kept for count in counts.values())
    return num_sent / (time.monotonic() - started) if num_sent else None


def ask_judges(
    panel: JudgePanel,
    comparisons: Callable[[], Iterable[Comparison]],
    ledger: Ledger,
    number: int,
    *,
    max_truncated: float,
) -> dict[str, RequestCounts]:
    """Ask every judge ``number`` of its questions, drawn at random. Returns counts by judge; raises as `ask_panel`."""
    counts: dict[str, RequestCounts] = {}
    for member in panel.members:
        drawn = lowest_ids((request for each in comparisons() for request in requests_of(member, each)), number)
        model = PricedChat(member.name, member.chat, member.price)
        counts[member.name] = ask_requests(model, drawn, ledger, num_requests=len(drawn), max_truncated=max_truncated)
    return counts


def ask_writers(
    models: ResponseModels, cases: Callable[[], Iterable[Case]], ledger: Ledger, number: int, *, max_truncated: float
) -> dict[str, RequestCounts]:
    """Ask every model ``number`` of its first turns, drawn at random. Returns counts; raises as `ask_models`."""
    counts: dict[str, RequestCounts] = {}
    for name, chat in models.chats.items():
        drawn = lowest_ids((request for case in cases() for _, request in new_samples(models, case, name)), number)
        counts[name] = ask_requests(
            chat, drawn, ledger, num_requests=len(drawn), max_truncated=max_truncated, remedy=SHORTER
        )
    return counts


def lowest_ids(requests: Iterable[Request], number: int) -> list[Request]:
    """Return the different requests with the lowest ids: drawn at random, since ids are hashes, and always the same."""
    drawn: dict[str, Request] = {}
    for request in requests:
        drawn[request.id] = request
        if len(drawn) > 2 * number:
            drawn = {name: drawn[name] for name in sorted(drawn)[:number]}
    return [drawn[name] for name in sorted(drawn)[:number]]
