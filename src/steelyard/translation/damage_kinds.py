"""The kinds of damage that a translation is checked for, and the record of one finding with its sentences."""

from collections.abc import Mapping
from types import MappingProxyType

from steelyard.core.types import Record
from steelyard.translation.passages import Passage, PassagePair, excerpt

DAMAGE_KINDS: Mapping[str, str] = MappingProxyType(
    {
        "empty": "The translation is empty, but the source is not.",
        "wrong_language": "The translation is in another language than its case.",
        "wrong_script": "The translation is in another script: Simplified for Traditional Chinese, Latin for Cyrillic.",
        "untranslated": "Words of the source are left as they were.",
        "repeated": "The translation repeats itself, as a model that does not stop does.",
        "sentences": "Sentences of the source are missing, or sentences are added.",
        "length": "The translation is much shorter or longer than the bench's translations of this length are.",
        "truncated": "The end is cut off: no final mark, or brackets or a block of code that do not end.",
        "number": "A number of the source is missing, or is another one.",
        "negation": "A negation is lost or added.",
        "code": "Code differs from the source in more than comments and string literals.",
        "structure": "List items, headings, rows of tables, paragraphs or lines differ in number.",
        "option_letter": "The letters of options or verdicts, such as A) or [[B]], are changed or translated.",
        "leftover": "Marks of a chat template, an opening or a refusal of the translator, or a frame are in the text.",
        "characters": "Characters are broken or not seen, or all letters are capitals.",
        "equal_responses": "Two responses differ in the source and are equal in the translation.",
        "swapped_responses": "Two responses have changed places.",
        "meaning": "The meaning is no nearer to the source than to other texts of the bench, by an encoder.",
        "responses": "The number or the ids of the responses differ from the source.",
    }
)
"""Each kind of damage with its meaning in one sentence."""


class MarkedSentence(Record, frozen=True, kw_only=True):
    """A sentence with the places of what is shown in it, as pairs of start and end."""

    text: str
    marks: tuple[tuple[int, int], ...] = ()


class DamageFinding(Record, frozen=True, kw_only=True):
    """One fault of a translation: its kind, its place, and the shortest excerpts that show it.

    ``kind`` is one of `DAMAGE_KINDS`. ``place`` is ``prompt``, ``response ID`` or ``responses``. ``sentences`` are that
    of the source and that of the translation, where the excerpts are only numbers.
    """

    kind: str
    place: str
    before: str
    after: str
    sentences: tuple[MarkedSentence, MarkedSentence] | None = None


def finding(kind: str, pair: PassagePair | Passage, before: str, after: str) -> DamageFinding:
    """Return a finding at the place of a text, with its excerpts shortened."""
    place = pair.target.place if isinstance(pair, PassagePair) else pair.place
    return DamageFinding(kind=kind, place=place, before=excerpt(before), after=excerpt(after))
