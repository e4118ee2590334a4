"""The client half of ``remote``: answers to questions, questions to a server, its numbers back to their answers."""

from collections.abc import Iterable, Iterator, Sequence
from concurrent.futures import ThreadPoolExecutor
from itertools import islice
from typing import Any, NamedTuple

from steelyard.core.errors import ModelError
from steelyard.core.types import Case, Scores
from steelyard.io.credentials import read_key
from steelyard.io.exchange import Manner, Reply, post
from steelyard.plugins.models._dialects import DIALECTS, Asked, Item, Malformed
from steelyard.plugins.models._items import Items, Unsent, Wanted, sending
from steelyard.plugins.models.remote import Config

_CASES_AT_A_TIME = 64
_ASKED_WRONGLY = ("http_401", "http_403", "http_404", "http_405")


class Slot(NamedTuple):
    """An item and where it belongs: the case's place in the window, and the response's id."""

    case: int
    response: str
    item: Item


class Remote:
    """A RewardModel. Unscored: ``cut``, ``marks`` (a text spells a special token that the server would obey),
    ``turns``, ``malformed``, ``unreachable``, ``timeout``, ``too_large``, ``empty``, ``http_…``, ``labels`` (several
    numbers and no ``label``).
    """

    def __init__(self, config: Config) -> None:
        self.config = config
        self.dialect = DIALECTS[config.dialect]
        rendering = (config.chat_template, config.strip, config.max_length)
        wanted = Wanted(config.dialect, config.tokenizer, config.send, *rendering)
        self.send = sending(wanted, self.dialect)
        self.items = Items(wanted, self.dialect, self.send)
        self.url = config.url.rstrip("/").removesuffix(self.dialect.path) + self.dialect.path
        self.asked = Asked(config.model, config.task, self.items.adds_marks)
        self.manner = Manner(
            timeout_seconds=config.timeout_seconds,
            num_tries=config.num_tries,
            wait_seconds=config.wait_seconds,
            key=read_key(config.secret, where="model.secret"),
            total_seconds=config.total_seconds,
        )
        self.was_answered = False

    def score(self, cases: Iterable[Case]) -> Iterator[Scores]:
        """One Scores a case, in order. Raises ModelError for a server that is not there, or is asked wrongly."""
        waiting = iter(cases)
        while window := list(islice(waiting, _CASES_AT_A_TIME)):
            yield from self._scored(window)

    def protocol(self) -> dict[str, Any]:
        """The dialect, the served model, and how conversations are rendered."""
        own = self.config
        return {
            "model": own.model or own.dialect,
            "dialect": own.dialect,
            "send": self.send,
            "label": own.label,
            "task": own.task,
        } | self.items.protocol()

    def _scored(self, cases: Sequence[Case]) -> Iterator[Scores]:
        found: list[dict[str, float | str]] = [{} for _ in cases]
        slots: list[Slot] = []
        for place, case in enumerate(cases):
            for response in case.responses:
                item = self.items.of(case, response)
                if isinstance(item, Unsent):
                    found[place][response.id] = item.reason
                else:
                    slots.append(Slot(place, response.id, item))
        batches = self._batches(slots)
        with ThreadPoolExecutor(self.config.workers) as pool:
            for batch, values in zip(batches, pool.map(self._ask, batches), strict=True):
                for slot, value in zip(batch, values, strict=True):
                    found[slot.case][slot.response] = value
        yield from (_line(case, values) for case, values in zip(cases, found, strict=True))

    def _batches(self, slots: Sequence[Slot]) -> list[list[Slot]]:
        size = 1 if self.send == "messages" or self.dialect.is_single else self.config.batch_size
        batches: list[list[Slot]] = []
        for slot in slots:
            is_full = not batches or len(batches[-1]) == size
            if is_full or (self.dialect.is_by_case and batches[-1][0].case != slot.case):
                batches.append([])
            batches[-1].append(slot)
        return batches

    def _ask(self, batch: Sequence[Slot]) -> list[float | str]:
        """A number or a reason for each item; where the server refuses a batch, each item is asked for alone."""
        reply = post(self.url, self.dialect.question([slot.item for slot in batch], self.asked), self.manner)
        if reply.reason is None:
            self.was_answered = True
            return self._read(reply.value, batch)
        self._check(reply)
        if len(batch) > 1 and reply.reason.startswith("http_4"):
            return [value for slot in batch for value in self._ask([slot])]
        return [reply.reason] * len(batch)

    def _check(self, reply: Reply) -> None:
        said = f" ({reply.detail[:200]})" if reply.detail else ""
        if reply.reason in _ASKED_WRONGLY:
            do = "check model.url, model.dialect, model.model and the secret"
            raise ModelError(f"the server answers {reply.reason}{said}", where=self.url, do=do)
        if reply.reason == "unreachable" and not self.was_answered:
            raise ModelError(f"no server answers{said}", where=self.url, do="start it, or check model.url")

    def _read(self, value: Any, batch: Sequence[Slot]) -> list[float | str]:
        try:
            rows = self.dialect.read(value, len(batch))
        except Malformed:
            return ["malformed"] * len(batch)
        texts = {str(slot.item.content) + slot.item.answer for slot in batch}
        if len(texts) > 1 and all(row == [1.0] for row in rows):
            found = f"the server gives exactly 1 to {len(texts)} different texts: a softmax over one label"
            raise ModelError(found, where=self.url, do="serve the raw logit: this version does not heed the request's")
        return [self._chosen(row) for row in rows]

    def _chosen(self, row: Sequence[float]) -> float | str:
        if self.config.label is None:
            return row[0] if len(row) == 1 else "labels"
        return row[self.config.label] if -len(row) <= self.config.label < len(row) else "labels"


def _line(case: Case, values: dict[str, float | str]) -> Scores:
    in_order = {response.id: values[response.id] for response in case.responses}
    return Scores(
        prompt=case.prompt.id,
        language=case.prompt.language,
        scores={name: None if isinstance(value, str) else value for name, value in in_order.items()},
        unscored={name: value for name, value in in_order.items() if isinstance(value, str)},
    )
