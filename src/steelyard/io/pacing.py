"""Number of requests that a server gets at a time: more while it bears them, fewer when it refuses, none in a pause.

`RequestPace` increases the number by addition and decreases it by multiplication, as TCP does. Nothing here waits or
reads a clock: every rule is a function of outcomes and times.
"""

import re
from collections.abc import Mapping
from datetime import UTC, datetime
from email.utils import parsedate_to_datetime
from math import ceil, isfinite
from typing import NamedTuple

FIRST_LIMIT = 8
"""The number of requests at a time before anything is known of the server."""
_GAIN = 1.2
"""By how much twice the requests must raise the rate of replies to be worth it."""
_SLACK = 1.25
"""The limit that is held, by what was enough: some requests more keep the server busy while replies are stored."""
_ROUNDS_HELD = 30
"""Rounds at a limit beyond which the rate did not rise, before a higher one is tried again."""
_DURATION = re.compile(r"(?:(\d+)h)?(?:(\d+)m)?(?:(\d+(?:\.\d+)?)s)?(?:(\d+(?:\.\d+)?)ms)?")
_LARGEST_DURATION = 1e9
"""A larger number of seconds is a time since 1970."""


class RequestPace:
    """The number of requests that may be under way, and the time before which none may be sent.

    The limit doubles from 8 while the rate of replies rises with it; a server that only queues gets no more. The
    first refusal ends the doubling. From then on a reply adds 1/limit and a refusal takes 1/2: a round (as many
    requests as the limit) without a refusal adds 1, and one whose share s was refused multiplies by 1 - s/2. After a
    refusal the next request waits for a reply, which makes room. ``most`` bounds the limit. Times are seconds of one
    clock.
    """

    def __init__(self, most: int) -> None:
        self.most = most
        self.resume_at = 0.0
        self._limit = float(min(FIRST_LIMIT, most))
        self._is_doubling = True
        self._rounds_held: int | None = None
        self._last: tuple[float, float] | None = None
        self._num_replies = 0
        self._round_began: float | None = None
        self._is_full = False
        self._slack = _SLACK

    @property
    def limit(self) -> int:
        """Return the number of requests that may be under way."""
        return int(self._limit)

    def has_room(self, num_running: int) -> bool:
        """Return whether another request may be sent beside those under way, a pause apart."""
        return num_running < (1 if self._is_full else self.limit)

    def pause(self, until: float) -> None:
        """Send nothing before this time."""
        self.resume_at = max(self.resume_at, until)

    def note(self, *, is_refused: bool, started: float, now: float) -> None:
        """Learn from a request that ended: ``is_refused`` where the server had no room for it or did not answer."""
        if is_refused:
            self._limit = max(1.0, self._limit - 0.5)
            self._is_doubling, self._rounds_held, self._is_full = False, None, True
            return
        self._is_full = False
        if self._round_began is None:
            self._round_began = started
        self._num_replies += 1
        if not self._is_doubling and self._rounds_held is None:
            self._limit = min(self._limit + 1 / self._limit, self.most)
        elif self._num_replies >= ceil(self._limit) * (4 if self._is_doubling else 1):
            self._end_round(now)

    def _end_round(self, now: float) -> None:
        rate = self._num_replies / max(now - (self._round_began or 0.0), 1e-9)
        self._num_replies, self._round_began = 0, now
        if self._rounds_held is not None:
            self._rounds_held += 1
            if self._rounds_held >= _ROUNDS_HELD:
                self._is_doubling, self._rounds_held, self._last = True, None, None
        elif self._last is not None and rate < _GAIN * self._last[1]:
            self._limit = min(self._slack * self._last[0], self.most)
            self._is_doubling, self._rounds_held, self._slack = False, 0, 1.0
        elif self._limit >= self.most:
            self._is_doubling, self._rounds_held = False, 0
        else:
            self._slack = _SLACK if self._last is not None else self._slack
            self._last = (self._limit, rate)
            self._limit = min(2 * self._limit, self.most)


class ServerWaits(NamedTuple):
    """Pauses that a server wants: seconds before this request is sent again, and before any other is sent."""

    retry_after: float = 0.0
    pause: float = 0.0


def server_waits(headers: Mapping[str, str], *, is_refused: bool, now: datetime) -> ServerWaits:
    """Return the waits that the headers of a response ask for; ``headers`` are in lower case.

    ``retry-after-ms``, ``retry-after`` (seconds, or a date, measured from the server's own ``date``) and the pairs
    ``x-ratelimit-remaining-X`` and ``x-ratelimit-reset-X``, also in Anthropic's spelling. Where nothing remains, the
    next request waits for the share of the reset time in which one request is freed.
    """
    retry_after = _retry_after(headers, now) if is_refused else 0.0
    freed = max((_freed(headers, name, now) for name in ("requests", "tokens")), default=0.0)
    return ServerWaits(retry_after or (freed if is_refused else 0.0), max(retry_after, freed))


def _retry_after(headers: Mapping[str, str], now: datetime) -> float:
    milliseconds = _number(headers.get("retry-after-ms"))
    if milliseconds is not None:
        return milliseconds / 1000
    text = headers.get("retry-after", "").strip()
    seconds = _number(text)
    if seconds is not None:
        return seconds
    date = _date(text)
    return 0.0 if date is None else max(0.0, (date - (_date(headers.get("date", "")) or now)).total_seconds())


def _freed(headers: Mapping[str, str], name: str, now: datetime) -> float:
    """Return the seconds until the server has room again under its limit of ``requests`` or ``tokens``."""
    for remaining, reset, limit in (
        (f"x-ratelimit-remaining-{name}", f"x-ratelimit-reset-{name}", f"x-ratelimit-limit-{name}"),
        (
            f"anthropic-ratelimit-{name}-remaining",
            f"anthropic-ratelimit-{name}-reset",
            f"anthropic-ratelimit-{name}-limit",
        ),
    ):
        if _number(headers.get(remaining)) == 0:
            seconds = _duration(headers.get(reset, ""), now)
            # The reset is that of the whole allowance, which fills up steadily: one request is freed long before. How
            # many tokens a request takes is not known here, so that a hundredth of their allowance is waited for.
            whole = _number(headers.get(limit)) or 1.0
            return seconds / (whole if name == "requests" else min(whole, 100.0))
    return 0.0


def _duration(text: str, now: datetime) -> float:
    """Return the seconds of ``6m0s``, ``20ms``, ``1.5``, a time since 1970 or an ISO date; 0 for anything else."""
    number = _number(text)
    if number is not None:
        return max(0.0, number - now.timestamp()) if number > _LARGEST_DURATION else number
    match = _DURATION.fullmatch(text.strip())
    if match and any(match.groups()):
        hours, minutes, seconds, milliseconds = (float(part or 0) for part in match.groups())
        return hours * 3600 + minutes * 60 + seconds + milliseconds / 1000
    try:
        date = datetime.fromisoformat(text.strip())
    except ValueError:
        return 0.0
    return max(0.0, ((date if date.tzinfo else date.replace(tzinfo=UTC)) - now).total_seconds())


def _number(text: str | None) -> float | None:
    if text is None or not re.fullmatch(r"\s*\d{1,15}(\.\d{1,9})?\s*", text, re.ASCII):
        return None
    number = float(text)
    return number if isfinite(number) else None


def _date(text: str) -> datetime | None:
    try:
        date = parsedate_to_datetime(text)
    except (ValueError, TypeError):
        return None
    return date if date.tzinfo else date.replace(tzinfo=UTC)
