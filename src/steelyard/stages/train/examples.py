"""Training examples from cases: token ids of every response that stands in a pair, and what was left out and why."""

from collections import Counter
from collections.abc import Iterable
from typing import Any, NamedTuple

from steelyard.core.errors import EvidenceError
from steelyard.core.types import Case
from steelyard.methods.ranking.pairs import IndexedPair, PairChoice, pairs_of
from steelyard.plugins.models._conversation import Encoded, Rendering, encode


class Example(NamedTuple):
    """One prompt: token ids a response, and pairs whose ends are positions among those."""

    rows: tuple[tuple[int, ...], ...]
    pairs: tuple[IndexedPair, ...]


class Examples(NamedTuple):
    """What training sees, and the counts of what it does not."""

    examples: tuple[Example, ...]
    num_in: int
    dropped: Counter[str]
    noted: Counter[str]

    @property
    def num_pairs(self) -> int:
        """All comparable pairs."""
        return sum(len(example.pairs) for example in self.examples)

    @property
    def num_responses(self) -> int:
        """All responses that stand in a pair; each is forwarded once an epoch."""
        return sum(len(example.rows) for example in self.examples)


def make_examples(
    cases: Iterable[Case], tokenizer: Any, rendering: Rendering, choice: PairChoice | None, *, where: str
) -> Examples:
    """Encode every case. Raises EvidenceError for answers over the length limit, or when no pair is left at all."""
    examples: list[Example] = []
    dropped: Counter[str] = Counter()
    noted: Counter[str] = Counter()
    too_long: list[str] = []
    num_in = 0
    for case in cases:
        num_in += 1
        pairs = pairs_of(case, choice)
        _check_weights(pairs, case, where)
        used = sorted({end for pair in pairs for end in pair[:2]})
        encoded = {index: encode(tokenizer, rendering, case, case.responses[index]) for index in used}
        over = [index for index, one in encoded.items() if one.is_over_length]
        noted["responses in no pair"] += len(case.responses) - len(used)
        noted["cut answers"] += len(over)
        too_long += [
            f"{case.prompt.id} / {case.responses[index].id} ({encoded[index].length} tokens)" for index in over
        ]
        example, num_equal = _example(pairs, encoded)
        noted["pairs of equal tokens"] += num_equal
        if example.pairs:
            examples.append(example)
        else:
            dropped["no comparable pair"] += 1
    if too_long and rendering.over_length == "refuse":
        _refuse_length(too_long, rendering, where)
    if not examples:
        raise EvidenceError(f"none of {num_in} cases has a comparable pair", where=where, do="resolve the cases first")
    return Examples(tuple(examples), num_in, dropped, +noted)


def _example(pairs: tuple[IndexedPair, ...], encoded: dict[int, Encoded]) -> tuple[Example, int]:
    """The example without the pairs whose two ends are the same tokens: they teach nothing and cannot be ordered."""
    kept = [pair for pair in pairs if encoded[pair.better].ids != encoded[pair.worse].ids]
    used = sorted({end for pair in kept for end in pair[:2]})
    place = {index: position for position, index in enumerate(used)}
    moved = tuple(pair._replace(better=place[pair.better], worse=place[pair.worse]) for pair in kept)
    return Example(tuple(encoded[index].ids for index in used), moved), len(pairs) - len(kept)


def _check_weights(pairs: tuple[IndexedPair, ...], case: Case, where: str) -> None:
    for pair in pairs:
        if pair.weight < 0:
            found = f"a pair of prompt {case.prompt.id!r} weighs {pair.weight}"
            raise EvidenceError(found, where=where, allowed="weights of 0 or more")


def _refuse_length(too_long: list[str], rendering: Rendering, where: str) -> None:
    raise EvidenceError(
        f"{len(too_long)} answers are longer than {rendering.max_length} tokens, the first: {too_long[0]}",
        where=where,
        do="raise --max-length, or say --over-length left or right to cut them, counted",
    )
