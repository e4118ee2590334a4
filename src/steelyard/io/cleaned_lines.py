"""Batches of case lines cleaned by workers, with the installed phrases and languages that the rules need."""

from collections.abc import Sequence
from functools import lru_cache
from typing import Literal, NamedTuple

import msgspec

from steelyard.core.languages import language_key
from steelyard.io.cases import decode_batch, encode_case
from steelyard.io.lines import LineBatch
from steelyard.prompts.taxonomy import read_data
from steelyard.responses.cleaning import Config, ManifestRow, clean_case
from steelyard.responses.cleaning_summary import CleaningCounts, Excerpt, excerpt_of
from steelyard.responses.foreign import ForeignText, Writing
from steelyard.responses.lengths import Group, LengthBounds, group_of
from steelyard.responses.phrases import AnswerPhrases, CleaningTable
from steelyard.responses.rules import Measures, chosen_rules

MOST_EXAMPLES = 3
"""The examples of a rule that a preview shows."""
_SURE = 0.8
_NO_BOUNDS = LengthBounds(0.0, float("inf"))
_encoder = msgspec.json.Encoder()


class CleanedBatch(NamedTuple):
    """The result of one batch: encoded lines, and numbers that add up."""

    case_lines: bytes
    manifest_lines: bytes
    counts: CleaningCounts
    examples: dict[str, list[Excerpt]]


def clean_batch(config: Config, bounds: dict[Group, LengthBounds], batch: LineBatch) -> CleanedBatch:
    """Decode, check and clean one batch of lines: the work of a worker."""
    rules = chosen_rules(config.actions, config.limits)
    counts = CleaningCounts()
    lines: list[bytes] = []
    rows: list[ManifestRow] = []
    examples: dict[str, list[Excerpt]] = {}
    for case in decode_batch(batch):
        # A case without responses may be the only one of its group: no rule asks for its bounds.
        measures = rule_measures(config.languages, bounds.get(group_of(case), _NO_BOUNDS))
        cleaned = clean_case(case, measures, rules, drop_prompts_with_few=config.small_prompts == "drop")
        counts.add(case, cleaned)
        rows += cleaned.rows
        if cleaned.case is not None:
            lines.append(encode_case(cleaned.case))
        for row in cleaned.rows:
            if row.response is not None and len(shown := examples.setdefault(row.rule, [])) < MOST_EXAMPLES:
                shown.append(excerpt_of(case, row))
    return CleanedBatch(b"".join(lines), b"".join(_encoder.encode(row) + b"\n" for row in rows), counts, examples)


def rule_measures(languages: Literal["identify", "scripts"], lengths: LengthBounds) -> Measures:
    """Return what the rules need: the installed phrases and languages, read once in a process, and usual lengths."""
    return Measures(installed_phrases(), _foreign(languages), lengths)


@lru_cache(maxsize=1)
def installed_phrases() -> AnswerPhrases:
    """Read the installed phrases, once in a process."""
    return AnswerPhrases(msgspec.convert(read_data("cleaning.toml"), CleaningTable))


@lru_cache(maxsize=2)
def _foreign(languages: str) -> ForeignText:
    """Read the installed languages, once in a process."""
    writings = {
        language_key(row["codes"][0]): Writing(row["codes"][0], str(row["script"]))
        for row in read_data("languages.toml").values()
    }
    return ForeignText(writings, _identify if languages == "identify" else None)


def _identify(texts: Sequence[str]) -> list[str | None]:
    # The libraries are imported for the first passage whose script does not decide.
    from steelyard.prompts.languages import identify

    return [None if each is None else each.language for each in identify(texts, min_probability=_SURE)]
