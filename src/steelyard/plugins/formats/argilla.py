"""Argilla records: fields, and what people (responses) and models (suggestions) said to each question.

Written from the record's ``to_dict`` in the repository argilla-io/argilla (version 2): ``responses`` is
``{question: [{value, user_id}]}``, ``suggestions`` is ``{question: {value, score, agent}}``. A ranking's value is a
list of ``{value, rank}``, 1 the best, equal ranks a tie: it becomes judgments on all of its pairs, of the question as
their task. A number is a rating, of the response that its question names (``response2-quality``), or of the only one.
Other answers (labels, texts) are kept with the row and counted. Which fields are the prompt and the answers is told by
their names; the others are kept with the row.
"""

from collections import Counter
from collections.abc import Iterable, Iterator
from typing import Any

from steelyard.core.config import Config as BaseConfig
from steelyard.core.errors import RecordError
from steelyard.core.protocols import Row
from steelyard.core.types import Case
from steelyard.plugins.formats._argilla import (
    KEYS,
    KIND,
    argilla_row,
    evidence_of,
    fresh_evidence,
    ranked_names,
)
from steelyard.plugins.formats._fields import PromptIds, as_read, rest, with_prompt
from steelyard.plugins.formats._named import count_keys_of_turns, form_facts, named_of
from steelyard.plugins.formats._parts import carrying


class Config(BaseConfig, frozen=True):
    """Nothing to set."""


class Argilla:
    """One record a prompt; people's answers are human evidence, suggestions are of the kind llm."""

    keys = KEYS
    carries = carrying(
        "system turns", "earlier turns", "prompt meta", "prompt ids", "response ids", "answers of several turns",
        "more than two responses", "judgments", "judges", "ratings", "raters",
    )  # fmt: skip

    def recognises(self, row: dict[str, Any]) -> bool:
        """Fields, and responses or suggestions by question."""
        return isinstance(row.get("fields"), dict) and all(
            isinstance(row.get(key), dict | None) for key in ("responses", "suggestions")
        ) and ("responses" in row or "suggestions" in row)  # fmt: skip

    def read(self, rows: Iterable[Row], noted: Counter[str]) -> Iterator[Case]:
        """Cases with judgments and ratings."""
        ids = PromptIds(noted)
        for row in rows:
            fields, said = _object(row, "fields"), {key: _object(row, key) for key in ("suggestions", "responses")}
            place = row.place._replace(path="fields")
            named = named_of(fields, place, ranked=ranked_names(said) & fields.keys())
            count_keys_of_turns(fields, noted)
            evidence = evidence_of(said, named.responses, row.place, noted)
            given = row.value.get("id")
            prompt = with_prompt(
                named.messages,
                id=ids.made(row) if given is None else ids.given(str(given), row),
                meta=rest(row, KEYS),
            )
            case = Case(prompt=prompt, responses=named.responses, **evidence._asdict())
            written = fresh_evidence(case, Counter())
            yield Case(
                prompt=prompt,
                responses=named.responses,
                **evidence._asdict(),
                meta=as_read(
                    KIND,
                    id=given,
                    **form_facts(named, fields),
                    # What is written anew says the same of the answers, and not always in the same words.
                    said={key: value for key, value in said.items() if value != written[key]} or None,
                    absent=[key for key in KEYS if key not in row.value],
                    null=[key for key in KEYS if key in row.value and row.value[key] is None],
                ),
            )

    def write(self, cases: Iterable[Case], lost: Counter[str]) -> Iterator[dict[str, Any]]:
        """A record a case, in the shape that ``from_dict`` reads."""
        for case in cases:
            yield argilla_row(case, lost, self.carries)


def build(config: Config) -> Argilla:
    """The format."""
    return Argilla()


def _object(row: Row, key: str) -> dict[str, Any]:
    value = row.value.get(key)
    if value is None and key != "fields" and (key in row.value or key == "suggestions"):
        return {}
    if not isinstance(value, dict):
        found = "lacks" if value is None else f"has {type(value).__name__} under"
        raise RecordError(f"the row {found} {key!r}", where=row.place, allowed=f"{key}: an object")
    return value
