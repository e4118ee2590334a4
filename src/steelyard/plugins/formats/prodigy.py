"""Prodigy's choice tasks: a text, options, and what an annotator accepted.

Written from the public documentation of Prodigy's choice interface and its support forum (the tool is not public):
``{text, options: [{id, text}], accept: [ids], answer}`` with ``_session_id``, ``_annotator_id``, ``_input_hash``,
``_task_hash`` and ``_timestamp``. With the answer ``accept``, every accepted option is better than every other one;
where all are accepted, they are ties. ``reject``, ``ignore`` and an empty choice give no verdict: of two options that
is a judgment that says so, of more it is counted. The judge is the session, or the annotator where there is one.
Rows that follow each other and differ only in who answered what are one case.
"""

from collections import Counter
from collections.abc import Iterable, Iterator
from itertools import groupby
from typing import Any

from steelyard.core.config import Config as BaseConfig
from steelyard.core.protocols import Row
from steelyard.core.types import Case, Message
from steelyard.plugins.formats._fields import PromptIds, as_read, rest, text_field, with_prompt
from steelyard.plugins.formats._parts import carrying
from steelyard.plugins.formats._prodigy import KEYS, KIND, PERSONAL, judgments_in, options_of, prodigy_rows, task_of


class Config(BaseConfig, frozen=True):
    """Nothing to set."""


class Prodigy:
    """A row an annotator's answer to a task."""

    keys = KEYS
    carries = carrying("prompt meta", "response ids", "response meta", "more than two responses", "judgments")

    def recognises(self, row: dict[str, Any]) -> bool:
        """A text with options and an answer, or the hash of a task."""
        return (
            {"text", "options"} <= row.keys()
            and isinstance(row["options"], list)
            and ("answer" in row or "_task_hash" in row)
        )

    def read(self, rows: Iterable[Row], noted: Counter[str]) -> Iterator[Case]:
        """Cases with judgments, one for each run of rows of a task."""
        ids = PromptIds(noted)
        for task, together in groupby(rows, key=task_of):
            group = list(together)
            first = group[0]
            text, responses = text_field(first, "text"), options_of(first)
            names = [response.id for response in responses]
            yield Case(
                prompt=with_prompt(
                    (Message(role="user", content=text),),
                    id=ids.made(Row(first.place, task)),
                    meta=rest(first, KEYS),
                ),
                responses=responses,
                judgments=tuple(one for row in group for one in judgments_in(row, names, noted)),
                meta=as_read(
                    KIND,
                    ids=[option["id"] for option in first.value["options"] if not isinstance(option["id"], str)],
                    rows=[{key: row.value[key] for key in PERSONAL if key in row.value} for row in group],
                ),
            )

    def write(self, cases: Iterable[Case], lost: Counter[str]) -> Iterator[dict[str, Any]]:
        """A row an annotator; a task that nobody has answered where a case has no judgments."""
        for case in cases:
            yield from prodigy_rows(case, lost, self.carries)


def build(config: Config) -> Prodigy:
    """The format."""
    return Prodigy()
