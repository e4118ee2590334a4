"""Blinding of annotators: ids of responses become letters, and names by which a model calls itself a mask.

Ids of a case file often name the model. A page therefore knows the responses of a task as A, B, C in the person's own
order. Spans that were marked in a masked text are counted in the stored one again, and the other way round.
"""

from collections.abc import Mapping
from functools import cached_property
from string import ascii_uppercase
from typing import NamedTuple

from steelyard.annotation.answers import Span, TaskAnswer, rename_responses
from steelyard.annotation.questions import LONGEST_TEXT
from steelyard.io.cleaned_lines import installed_phrases
from steelyard.responses.phrases import MASK
from steelyard.workbench.storage.refusals import RefusedError

_LONGEST_WORDS = 2000
_MOST_SPANS = 200
_MOST_COMPARISONS = 100
_MOST_ENTRIES = 50


class BlindText:
    """A text with the names masked by which a model says what it is. Offsets are in Unicode code points."""

    def __init__(self, text: str) -> None:
        self._text = text

    @cached_property
    def _names(self) -> tuple[tuple[int, int], ...]:
        # Most answers have no spans: they are stored without a look at the texts.
        return installed_phrases().own_names(self._text)

    @property
    def stored(self) -> str:
        """The text as it is stored."""
        return self._text

    @cached_property
    def shown(self) -> str:
        """The text as annotators see it."""
        pieces, end = [], 0
        for start, stop in self._names:
            pieces += [self._text[end:start], MASK]
            end = stop
        return "".join([*pieces, self._text[end:]])

    def stored_span(self, start: int, end: int) -> tuple[int, int]:
        """Return where a span of the shown text is in the stored one; a mask that it touches counts as a whole."""
        return self._stored(start, is_end=False), self._stored(end, is_end=True)

    def shown_span(self, start: int, end: int) -> tuple[int, int]:
        """Return where a span of the stored text is in the shown one; a name that it touches is a whole mask."""
        return self._shown(start, is_end=False), self._shown(end, is_end=True)

    def _stored(self, place: int, *, is_end: bool) -> int:
        shift = 0
        for start, stop in self._names:
            first = start + shift
            if place <= first:
                break
            if place < first + len(MASK):
                return stop if is_end else start
            shift += len(MASK) - (stop - start)
        return place - shift

    def _shown(self, place: int, *, is_end: bool) -> int:
        shift = 0
        for start, stop in self._names:
            if place <= start:
                break
            if place < stop:
                return start + shift + (len(MASK) if is_end else 0)
            shift += len(MASK) - (stop - start)
        return place + shift


class BlindTask(NamedTuple):
    """The responses of an assignment as its page knows them: texts by letter, and the id behind each letter."""

    texts: Mapping[str, BlindText]
    ids: Mapping[str, str]

    def stored(self, answer: TaskAnswer) -> TaskAnswer:
        """Return an answer of the page with the ids of the responses. Raises RefusedError for what no page sends."""
        words = [answer.cannot_judge, answer.remark, *answer.discarded.values()]
        spans = [span for each in answer.spans.values() for span in each]
        words += [word for span in spans for word in span[2:]]
        if any(len(word or "") > _LONGEST_WORDS for word in words):
            raise _too_long("a reason is too long", _LONGEST_WORDS)
        if any(len(text) > LONGEST_TEXT for text in answer.entries.values()):
            raise _too_long("a text is too long", LONGEST_TEXT)
        if (
            len(spans) > _MOST_SPANS
            or len(answer.comparisons) > _MOST_COMPARISONS
            or len(answer.entries) > _MOST_ENTRIES
            or len(answer.ranking) > len(ascii_uppercase)
        ):
            problem, values = "the answer has too many parts", {"limit": f"{_MOST_SPANS}"}
            raise RefusedError(
                problem, words="too many marks", values=values, where="answer", allowed=f"{_MOST_SPANS} marks"
            )
        return rename_responses(answer, self._id_of, lambda letter, span: self._moved(letter, span, is_shown=False))

    def shown(self, answer: TaskAnswer) -> TaskAnswer:
        """Return a stored answer as the page knows it."""
        letters = {response: letter for letter, response in self.ids.items()}
        return rename_responses(
            answer,
            letters.__getitem__,
            lambda response, span: self._moved(letters[response], span, is_shown=True),
        )

    def _id_of(self, letter: str) -> str:
        if letter not in self.ids:
            problem = f"{letter[:20]!r} is not a response of the task"
            raise RefusedError(problem, words="misfit", where="answer", allowed="A, B, C")
        return self.ids[letter]

    def _moved(self, letter: str, span: Span, *, is_shown: bool) -> Span:
        self._id_of(letter)
        start, end, kind, remark = span
        text = self.texts[letter]
        if is_shown:
            return (*text.shown_span(start, end), kind, remark)
        if not 0 <= start < end <= len(text.shown):
            problem = f"a span from {start} to {end} of {letter}"
            raise RefusedError(problem, words="misfit", where="answer", allowed="within the text")
        return (*text.stored_span(start, end), kind, remark)


def blind_task(responses: Mapping[str, str]) -> BlindTask:
    """Return the responses of an assignment, texts by id in the person's order, as its page knows them."""
    letters = dict(zip(ascii_uppercase, responses, strict=False))
    return BlindTask({letter: BlindText(responses[response]) for letter, response in letters.items()}, letters)


def _too_long(problem: str, limit: int) -> RefusedError:
    values, allowed = {"limit": f"{limit:,}"}, f"{limit} characters"
    return RefusedError(problem, words="too long", values=values, where="answer", allowed=allowed)
