"""Potato's rankings: an item, and an annotator's labels that rank its answers (``rank_order``: ``B,D=A,C``).

Written from the page on the ranking schema and the exporters in the repository davidjurgens/potato: an annotation is
``{instance_id, user_id, labels: {schema: {rank_order}}}``, best first, ``=`` between equals. The exports keep the items
in a file of their own, so a row is an annotation that has been joined with its item's data under ``item`` (a layout of
this project, for want of a published one): the prompt and the answers by their names, which are the ranked
identifiers, or a list of items with ``id`` and ``text``. Rows of one ``instance_id`` that follow each other are one
case with several annotators. Potato's own DPO export is ``{prompt, chosen, rejected}``: the format ``trl``.
"""

from collections import Counter
from collections.abc import Iterable, Iterator
from itertools import groupby
from typing import Any

from steelyard.core.config import Config as BaseConfig
from steelyard.core.protocols import Row
from steelyard.core.types import Case
from steelyard.plugins.formats._fields import PromptIds, as_read, rest, with_prompt
from steelyard.plugins.formats._named import count_keys_of_turns, form_facts, named_of
from steelyard.plugins.formats._parts import carrying
from steelyard.plugins.formats._potato import KEYS, KIND, checked, potato_rows, ranked_names, said_of


class Config(BaseConfig, frozen=True):
    """Nothing to set."""


class Potato:
    """A row an annotator of an item."""

    keys = KEYS
    carries = carrying(
        "system turns", "earlier turns", "prompt meta", "prompt ids", "response ids", "response meta",
        "more than two responses", "judgments",
    )  # fmt: skip

    def recognises(self, row: dict[str, Any]) -> bool:
        """An instance with its item and labels."""
        return "instance_id" in row and all(isinstance(row.get(key), dict) for key in ("item", "labels"))

    def read(self, rows: Iterable[Row], noted: Counter[str]) -> Iterator[Case]:
        """Cases with judgments, one for each run of rows of an instance."""
        ids = PromptIds(noted)
        for _, together in groupby(map(checked, rows), key=lambda row: str(row.value["instance_id"])):
            group = list(together)
            first, item = group[0], group[0].value["item"]
            named = named_of(
                item,
                first.place._replace(path="item"),
                ranked=ranked_names(group) & item.keys(),
                has_items=True,
            )
            count_keys_of_turns(item, noted)
            others = [rest(row, KEYS) or {} for row in group]
            # What the rows of one instance say alike is of the prompt, all else of the single row.
            common = {key: value for key, value in others[0].items() if all(one.get(key) == value for one in others)}
            given = first.value["instance_id"]
            yield Case(
                prompt=with_prompt(named.messages, id=ids.given(str(given), first), meta=common),
                responses=named.responses,
                judgments=tuple(said_of(group, [response.id for response in named.responses], noted)),
                meta=as_read(
                    KIND,
                    id=given,
                    **form_facts(named, item),
                    rows=[
                        {key: row.value[key] for key in ("user_id", "labels") if key in row.value}
                        | {key: value for key, value in other.items() if key not in common}
                        for row, other in zip(group, others, strict=True)
                    ],
                ),
            )

    def write(self, cases: Iterable[Case], lost: Counter[str]) -> Iterator[dict[str, Any]]:
        """A row a ranking; a row without an annotator where a case has no judgments."""
        for case in cases:
            yield from potato_rows(case, lost, self.carries)


def build(config: Config) -> Potato:
    """The format."""
    return Potato()
