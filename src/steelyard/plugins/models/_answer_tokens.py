"""Where a conversation's tokens stop being the prompt's and begin to be the answer's, found by tokens alone."""

from collections.abc import Sequence
from typing import Any, NamedTuple

import msgspec

from steelyard.core.types import Case, Response
from steelyard.plugins.models._conversation import Rendering, encode

# Two answers that share no character and no byte: what the tokens of both begin with is what stands before an answer.
UNLIKE = ("\ue000", "\uf8ff")
_ENDLESS = 10**9


class AnswerRow(NamedTuple):
    """Token ids of a conversation, and the place of the first token of its answer."""

    ids: tuple[int, ...]
    start: int


class AnswerTokens:
    """Rows of a case's answers; a token that holds the end of the prompt and the start of the answer is the answer's.

    ``with_header``: what the template writes between prompt and answer counts as answer, as in RewardBench.
    """

    def __init__(self, tokenizer: Any, rendering: Rendering, *, with_header: bool) -> None:
        self.tokenizer = tokenizer
        self.rendering = msgspec.structs.replace(rendering, max_length=_ENDLESS)
        self.with_header = with_header

    def rows(self, case: Case) -> list[AnswerRow | None]:
        """One row a response, whole however long; null for an answer of several turns, which are not all its own."""
        if not case.responses:
            return []
        prompt = self._before(case)
        return [None if response.text is None else self._row(case, response, prompt) for response in case.responses]

    def _row(self, case: Case, response: Response, prompt: Sequence[int]) -> AnswerRow:
        ids = encode(self.tokenizer, self.rendering, case, response).ids
        return AnswerRow(ids, shared(prompt, ids))

    def _before(self, case: Case) -> tuple[int, ...]:
        if self.with_header:
            *before, last = case.prompt.messages
            asked = msgspec.structs.replace(case, prompt=msgspec.structs.replace(case.prompt, messages=tuple(before)))
            return encode(self.tokenizer, self.rendering, asked, Response(id="prompt", messages=(last,))).ids
        one, other = (
            encode(self.tokenizer, self.rendering, case, Response(id="unlike", text=text)).ids for text in UNLIKE
        )
        return one[: shared(one, other)]


def shared(one: Sequence[int], other: Sequence[int]) -> int:
    """How many ids both begin with."""
    for place, (left, right) in enumerate(zip(one, other, strict=False)):
        if left != right:
            return place
    return min(len(one), len(other))


def with_published_marks(row: AnswerRow, *, bos: int | None, eos: int) -> AnswerRow:
    """One more beginning mark in front (the end mark where there is none), the end mark behind: as RewardBench does."""
    return AnswerRow((eos if bos is None else bos, *row.ids, eos), row.start + 1)


def cut_as_published(row: AnswerRow, limit: int) -> AnswerRow:
    """The prompt cut to its last 128 tokens, then the answer to what is left: RewardBench's rule.

    Differs from: RewardBench, which cuts an answer's prompt also where only the other answer of the pair is too long.
    """
    prompt, answer = row.ids[: row.start], row.ids[row.start :]
    if len(row.ids) > limit:
        prompt = prompt[-128:]
    if len(prompt) + len(answer) > limit:
        answer = answer[: limit - 128]
    return AnswerRow(prompt + answer, len(prompt))
