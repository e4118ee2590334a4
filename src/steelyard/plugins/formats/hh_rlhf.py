r"""Anthropic's HH-RLHF: two whole transcripts of a person and an assistant, the better one under ``chosen``.

Written from the README of the repository anthropics/hh-rlhf and the look of its files: each turn begins after a blank
line with ``Human:`` or ``Assistant:``. The prompt is the turns that both transcripts share, the answers what follows:
mostly one assistant turn, more where they part earlier. A transcript that ends with the person's turn is kept so, and
counted; of two transcripts that share no turn the prompt is empty, and they are counted too.

Text before the first mark, which the data do not have, is read and written as a system turn.
"""

from collections import Counter
from collections.abc import Iterable, Iterator
from typing import Any

from steelyard.core.config import Config as BaseConfig
from steelyard.core.errors import RecordError
from steelyard.core.protocols import Row
from steelyard.core.types import Case
from steelyard.plugins.formats._fields import (
    PromptIds,
    answer_turns,
    as_read,
    form_of,
    rest,
    text_field,
    with_meta,
    with_prompt,
)
from steelyard.plugins.formats._implicit import SIDES, Parts, cut_turns
from steelyard.plugins.formats._pairwise import pair_case, pair_rows
from steelyard.plugins.formats._parts import carrying_pairs
from steelyard.plugins.formats._transcripts import HUMAN, Transcript, text_of, turns_in

_KIND = "hh_rlhf"


class Config(BaseConfig, frozen=True):
    """Nothing to set."""


class HhRlhf:
    """One row a pair; what is written is, to the letter, what was read."""

    keys = SIDES
    carries = carrying_pairs("answers of several turns")

    def recognises(self, row: dict[str, Any]) -> bool:
        """Two texts that begin with a person's turn, without a prompt or margin of their own."""
        is_whole = all(isinstance(row.get(key), str) and row[key].startswith("\n\nHuman:") for key in SIDES)
        return is_whole and not {"prompt", "margin"} & row.keys()

    def read(self, rows: Iterable[Row], noted: Counter[str]) -> Iterator[Case]:
        """Cases of two tiers."""
        ids = PromptIds(noted)
        for row in rows:
            chosen, rejected = (_transcript(row, key) for key in SIDES)
            parts = cut_turns(chosen.turns, rejected.turns)
            noted["transcripts that share no turn"] += not parts.prompt
            noted["transcripts that end with a person's turn"] += any(side[-1].role == "user" for side in parts[1:])
            meta = as_read(_KIND, bare=[chosen.bare, rejected.bare] if chosen.bare or rejected.bare else None)
            prompt = with_prompt(parts.prompt, id=ids.made(row), meta=rest(row, SIDES))
            yield pair_case(prompt, (parts.chosen, parts.rejected), noted, meta=meta)

    def write(self, cases: Iterable[Case], lost: Counter[str]) -> Iterator[dict[str, Any]]:
        """A row a pair. A case whose turns would not be read again from a transcript is counted and not written."""
        for case in cases:
            bare = form_of(case, _KIND).get("bare", ([], []))
            rows = []
            for better, worse, _ in pair_rows(case, lost, self.carries):
                parts = Parts(case.prompt.messages, answer_turns(better), answer_turns(worse))
                sides = (parts.prompt + parts.chosen, parts.prompt + parts.rejected)
                texts = [text_of(turns, HUMAN, places) for turns, places in zip(sides, bare, strict=True)]
                rows.append(dict(zip(SIDES, texts, strict=True)))
                if any(text is None for text in texts):
                    break
                lost["prompts inside the answers"] += cut_turns(*sides) != parts
            if any(None in row.values() for row in rows):
                lost["cases of another shape"] += 1
                continue
            yield from (with_meta(row, case, SIDES, lost) for row in rows)


def build(config: Config) -> HhRlhf:
    """The format."""
    return HhRlhf()


def _transcript(row: Row, key: str) -> Transcript:
    text = text_field(row, key)
    found = turns_in(text, HUMAN)
    if all(turn.role == HUMAN.before for turn in found.turns):
        raise RecordError(
            "no transcript", where=row.place._replace(path=key), allowed=r"\n\nHuman: …\n\nAssistant: … (any turns)"
        )
    return found
