"""Published sets of prompts, read by the table of their fields in ``data/prompt_sources.toml``.

Field names and categories were read from these files: AlignBench ``data/data_v1.1_release.jsonl`` (THUDM/AlignBench at
5b79d4a8), Flames ``Flames_1k_Chinese.jsonl`` (AIFlames/Flames at 234bcb7a), GAOKAO-Bench ``Data/*/*.json``
(OpenLMLab/GAOKAO-Bench at 6dbb24f8), HalluQA ``HalluQA.json`` (OpenMOSS/HalluQA at 7e5c6739), HumanEval-XL
``data/python/*.jsonl`` (FloatAI/humaneval-xl at ad93b7c7), and of MathOctopus MGSM's and MSVAMP's ``*.json``
(microsoft/MathOctopus at 4d385db6). Only documented: COIG-CQIA, from the README of paralym/COIG-CQIA at 53427dae, which
shows one pair of task types. CLiB's questions are published as a spreadsheet that was not read; its fields are likely
names of the columns of a sheet that was saved as CSV, and its abilities those of its tables (jeinlee1991/
chinese-llm-benchmark, ``alldata.md`` at b345f0b1).

One published answer is the prompt's reference: in HumanEval-XL a solution, in HalluQA the first of the best answers
(``steelyard convert`` needs ``--from halluqa``: its rows also hold wrong answers, which a how-to turns into pairs). A
category is that of `steelyard.prompts.taxonomy`; one that it lacks stays as it is, and is counted. The case's ``meta``
records in ``category_from`` the set's own category. MGSM's rows (``query``, ``response``) look like others', and name
no language. MathOctopus' training rows (``prompt``, ``chosen``) are one answer each, under keys of pairs: not read.
"""

import re
from collections.abc import Iterator
from typing import NamedTuple

import msgspec

from steelyard.core.errors import RecordError
from steelyard.core.plugins import Plugin, without_settings
from steelyard.core.protocols import Row
from steelyard.core.types import Case, JsonObject, Record
from steelyard.curation.format_support import carrying_prompts
from steelyard.plugins.formats._languages import language_code, unknown_language
from steelyard.plugins.formats._row_format import (
    CaseReader,
    RowFormat,
)
from steelyard.prompts.taxonomy import CATEGORY_FROM, categorise, read_data

UNMAPPED = "categories that the taxonomy lacks"


class SourceFields(Record, frozen=True, kw_only=True):
    """A table of ``prompt_sources.toml``, whose head explains it."""

    source: str
    question: tuple[str, ...]
    further: str | None = None
    language: str | None = None
    language_field: str | None = None
    id: str | None = None
    reference: tuple[str, ...] = ()
    category: tuple[str, ...] = ()
    recognised: tuple[str, ...] = ()
    strip: str | None = None
    categories: dict[str, str]

    def first_names(self) -> tuple[str, ...]:
        """Return the fields of a row by their first names."""
        single = (self.question[0], self.further, self.language_field, self.id, *self.reference[:1])
        return tuple(dict.fromkeys((*filter(None, single), *self.category)))


class _SourceFormat(NamedTuple):
    """The rows of one set of prompts. ``kind`` is the set's key in the table."""

    kind: str
    fields: SourceFields

    def format(self) -> RowFormat:
        """Return the format of the rows."""
        fields = self.fields
        parts = {"prompt ids": fields.id, "reference": fields.reference, "language": fields.language_field}
        return RowFormat(
            kind=self.kind,
            keys=fields.first_names(),
            supports=carrying_prompts("prompt meta", *(part for part, keys in parts.items() if keys)),
            matches=lambda row: bool(fields.recognised) and row.keys() >= {*fields.recognised},
            parse=self._case,
        )

    def _case(self, reader: CaseReader) -> Case:
        row, fields = reader.row, self.fields
        question, reference, tiers, answer = self._cells(row)
        further = row.optional_text(fields.further) if fields.further else None
        language = self._language(row)
        category = categorise(self.kind, tiers)
        reader.warnings[UNMAPPED] += not category.is_known and bool(tiers)
        used = (question, reference, *fields.first_names()[1:])
        row_id = row.value.get(fields.id) if fields.id else None
        if row_id is not None and (isinstance(row_id, bool) or not isinstance(row_id, str | int)):
            raise RecordError("an id that is neither a text nor a whole number", where=row.at(fields.id or ""))
        prompt = reader.prompt(
            "\n".join(text for text in (row.text(question), further) if text),
            id=reader.ids.take(row, None if row_id is None else str(row_id), language=language),
            language=language,
            source=fields.source,
            category=category.tiers,
            reference=_text_of(answer),
            meta=row.others(filter(None, used)),
        )
        assigned = {"by": "source", "source": self.kind, "category": list(tiers), "known": category.is_known}
        return Case(prompt=prompt, responses=(), meta={CATEGORY_FROM: assigned})

    def _cells(self, row: Row) -> tuple[str, str | None, tuple[str, ...], str | float | list[str] | None]:
        """Return the keys of question and reference, the set's own tiers of the category, and the reference's value.

        Raises RecordError for a field that is missing or of another type.
        """
        fields = self.fields
        needed = [key for key in fields.first_names() if key in fields.recognised and key not in fields.question]
        missing = next((key for key in needed if key not in row.value), None)
        if missing is not None:
            raise RecordError(f"the row lacks {missing!r}", where=row.place, allowed=", ".join(fields.recognised))
        question = next((key for key in fields.question if key in row.value), fields.question[0])
        reference = next((key for key in fields.reference if key in row.value), None)
        answer = None if reference is None else row.value[reference]
        is_texts = isinstance(answer, list) and all(isinstance(item, str) for item in answer)
        if isinstance(answer, bool) or not (answer is None or isinstance(answer, str | int | float) or is_texts):
            where = row.at(reference or "")
            raise RecordError("a reference that is neither a text nor texts", where=where, allowed='"…", or ["…", "…"]')
        return question, reference, self._own_category(row.value), answer

    def _own_category(self, row: JsonObject) -> tuple[str, ...]:
        """Return the set's own tiers of a row."""
        tiers = (text for key in self.fields.category for text in _texts_in(row.get(key)))
        return tuple(re.sub(self.fields.strip, "", text) for text in tiers) if self.fields.strip else tuple(tiers)

    def _language(self, row: Row) -> str | None:
        field = self.fields.language_field
        if field is None:
            return self.fields.language
        name = row.optional_text(field)
        code = language_code(name)
        if name is not None and code is None:
            raise unknown_language(name, row.at(field))
        return code


def _text_of(answer: str | float | list[str] | None) -> str | None:
    """Return a reference as one text, each of several in a line of its own; null for an empty one."""
    if answer is None:
        return None
    return ("\n".join(answer) if isinstance(answer, list) else str(answer)) or None


def _texts_in(value: object) -> Iterator[str]:
    """Yield the texts of a category: a text, a list of texts, or an object of tiers."""
    if isinstance(value, str) and value:
        yield value
    elif isinstance(value, list | dict):
        for item in value.values() if isinstance(value, dict) else value:
            yield from _texts_in(item)


def _plugin(kind: str) -> Plugin:
    fields = msgspec.convert(read_data("prompt_sources.toml")[kind], SourceFields)
    return without_settings(
        _SourceFormat(kind, fields).format(), f"The prompts of {fields.source}, with its categories."
    )


KINDS = {
    "alignbench": _plugin("alignbench"),
    "clib": _plugin("clib"),
    "coig_cqia": _plugin("coig_cqia"),
    "flames": _plugin("flames"),
    "gaokao_bench": _plugin("gaokao_bench"),
    "halluqa": _plugin("halluqa"),
    "humaneval_xl": _plugin("humaneval_xl"),
    "mathoctopus": _plugin("mathoctopus"),
}
