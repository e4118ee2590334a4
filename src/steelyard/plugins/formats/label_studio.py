"""Label Studio tasks: data, people's annotations (Pairwise, Ranker and Rating results) and models' predictions.

Written from the documentation of the tags Pairwise, Ranker and Rating and of the JSON export. A pairwise result has
``selected`` left or right, of the two answers that ``to_name`` names, or else of the task's first two. A ranker's
value is ``{name: [ids, best first]}``, or with buckets ``{bucket: [ids]}``, best bucket first and each a tie; the
bucket ``_`` holds what was not moved. Results become judgments with ``from_name`` as their task; a skipped task
(``was_cancelled``) of two answers is a judgment without a verdict. What config names the data is not in the export:
the prompt and the answers are told by their names, or the answers are a list of items with ``id`` and ``body``.
"""

from collections import Counter
from collections.abc import Iterable, Iterator
from typing import Any

from steelyard.core.config import Config as BaseConfig
from steelyard.core.errors import RecordError
from steelyard.core.protocols import Row
from steelyard.core.types import Case
from steelyard.plugins.formats._fields import PromptIds, as_read, list_field, rest, with_prompt
from steelyard.plugins.formats._label_studio import KEYS, KIND, LISTS, evidence_of, fresh_lists, label_studio_row
from steelyard.plugins.formats._named import count_keys_of_turns, form_facts, named_of
from steelyard.plugins.formats._parts import carrying


class Config(BaseConfig, frozen=True):
    """Nothing to set."""


class LabelStudio:
    """One task a prompt; annotations are human evidence, predictions are of the kind llm."""

    keys = KEYS
    carries = carrying(
        "system turns", "earlier turns", "prompt meta", "prompt ids", "response ids", "response meta",
        "more than two responses", "judgments", "judges", "ratings", "raters",
    )  # fmt: skip

    def recognises(self, row: dict[str, Any]) -> bool:
        """Data as an object, and a list of annotations or predictions."""
        return isinstance(row.get("data"), dict) and any(isinstance(row.get(key), list) for key in LISTS)

    def read(self, rows: Iterable[Row], noted: Counter[str]) -> Iterator[Case]:
        """Cases with judgments and ratings."""
        ids = PromptIds(noted)
        for row in rows:
            data = row.value.get("data")
            if not isinstance(data, dict):
                raise RecordError("the row lacks 'data'", where=row.place, allowed="data: an object")
            said = {key: list_field(row, key, default=()) for key in LISTS}
            named = named_of(data, row.place._replace(path="data"), has_items=True)
            count_keys_of_turns(data, noted)
            evidence = evidence_of(said, named.responses, row.place, noted)
            given = row.value.get("id")
            prompt = with_prompt(
                named.messages,
                id=ids.made(row) if given is None else ids.given(str(given), row),
                meta=rest(row, KEYS),
            )
            case = Case(prompt=prompt, responses=named.responses, **evidence._asdict())
            written = fresh_lists(case, Counter())
            yield Case(
                prompt=prompt,
                responses=named.responses,
                **evidence._asdict(),
                meta=as_read(
                    KIND,
                    id=given,
                    **form_facts(named, data),
                    said={key: value for key, value in said.items() if value != written[key]} or None,
                    absent=[key for key in KEYS if key not in row.value],
                    null=[key for key in KEYS if key in row.value and row.value[key] is None],
                ),
            )

    def write(self, cases: Iterable[Case], lost: Counter[str]) -> Iterator[dict[str, Any]]:
        """A task a case, to be imported again."""
        for case in cases:
            yield label_studio_row(case, lost, self.carries)


def build(config: Config) -> LabelStudio:
    """The format."""
    return LabelStudio()
