"""The responses to one prompt of the built-in corpus: its good answer among worse ones, as cases."""

from collections.abc import Sequence
from typing import NamedTuple

import numpy as np

from steelyard.core.errors import ConfigError
from steelyard.core.identity import UniqueIds, content_id
from steelyard.core.seeds import generator
from steelyard.core.types import Case, Meta, Prompt, Response
from steelyard.methods.annotation.corpus import Entry
from steelyard.methods.annotation.worsening import RULES, Material

GOOD = "good_answer"
GOOD_QUALITY = 1.0
SOURCE = "built-in corpus"
_SIMULATED: Meta = {"simulated": True}


class Fault(NamedTuple):
    """A kind of worse answer, and how bad, from 0 to 1."""

    kind: str
    severity: float

    @property
    def quality(self) -> float:
        """The latent quality of an answer with this fault."""
        return RULES[self.kind].quality(self.severity)


class Draft(NamedTuple):
    """One response: its text, what made it (`GOOD` or a kind of `RULES`), and its latent quality."""

    text: str
    made_by: str
    quality: float


def draw_faults(kinds: Sequence[str], number: int, rng: np.random.Generator) -> tuple[Fault, ...]:
    """So many faults of different kinds, all kinds alike likely, with uniform severity. Raises ConfigError if few."""
    if len(kinds) < number:
        raise ConfigError(f"{len(kinds)} kinds for {number} worse answers of different kinds", where="num_worse")
    severities = rng.random(len(kinds))
    chosen = rng.choice(len(kinds), number, replace=False)
    return tuple(Fault(kinds[int(index)], float(severities[index])) for index in chosen)


def write_drafts(material: Material, faults: Sequence[Fault], *, seed: int) -> tuple[Draft, ...]:
    """The good answer, then one with each fault; the text depends on the entry, the fault and the seed alone."""
    drafts = [Draft(material.entry.answer, GOOD, GOOD_QUALITY)]
    for fault in faults:
        rng = generator(seed, "worse", material.entry.id, fault.kind)
        text = RULES[fault.kind].make(material, fault.severity, rng)
        drafts.append(Draft(text, fault.kind, fault.quality))
    return tuple(drafts)


def gold_case(entry: Entry, drafts: Sequence[Draft], *, seed: int) -> Case:
    """The prompt with its responses, shuffled, and the true ranking by latent quality: equal ones share a tier.

    Neither a response's id, which is a hash of its text, nor its place or author tells how it was made; ``meta`` does.
    """
    order = generator(seed, "order", entry.id).permutation(len(drafts))
    shuffled = [drafts[index] for index in order]
    ids = UniqueIds().take_all(content_id(draft.text) for draft in shuffled)
    levels = sorted({draft.quality for draft in shuffled}, reverse=True)
    return Case(
        prompt=prompt_of(entry),
        responses=tuple(
            Response(id=name, text=draft.text, meta={"made_by": draft.made_by, "quality": round(draft.quality, 4)})
            for name, draft in zip(ids, shuffled, strict=True)
        ),
        ranking=tuple(
            tuple(name for name, draft in zip(ids, shuffled, strict=True) if draft.quality == level) for level in levels
        ),
        meta=_SIMULATED,
    )


def prompt_of(entry: Entry) -> Prompt:
    """The prompt of an entry."""
    return Prompt(id=entry.id, messages=entry.messages, language=entry.language, category=entry.category, source=SOURCE)
