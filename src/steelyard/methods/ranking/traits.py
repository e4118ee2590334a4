"""What measures of judges need beside the verdicts: who wrote the answers, how long they are, how they were shown."""

import zlib
from array import array
from collections.abc import Iterable, Iterator
from typing import NamedTuple

import numpy as np

from steelyard.core.types import Case, Response
from steelyard.methods.measures.tallies import MOST_UNITS
from steelyard.methods.ranking.evidence import EVERYTHING, Only
from steelyard.methods.ranking.graph import Integers

UNKNOWN = -1
_BITS = 20
_MASK = (1 << _BITS) - 1


class Traits(NamedTuple):
    """Columns beside those of an `Evidence` of the same cases.

    ``unit`` (one entry a case): what the prompt is drawn with in a bootstrap. One entry a judgment: ``left_place`` and
    ``right_place``, from 0, in what was shown, and ``num_shown``; 0 shown is unknown. One entry a response, case after
    case: ``length`` in code points, and ``author``, a position in ``authors`` or -1.
    """

    unit: Integers
    left_place: Integers
    right_place: Integers
    num_shown: Integers
    length: Integers
    author: Integers
    authors: tuple[str, ...]


class Seen:
    """Gathers traits from cases as they pass by, so that none of them is kept."""

    def __init__(self, only: Only = EVERYTHING) -> None:
        self._only = only
        self._admits_all = only.admits_all
        self._unit = array("i")
        self._shown = array("q")
        self._length = array("i")
        self._author: list[str | None] = []

    def passing(self, cases: Iterable[Case]) -> Iterator[Case]:
        """The cases as they are, each looked at."""
        for case in cases:
            self._look(case)
            yield case

    def traits(self) -> Traits:
        """What was gathered."""
        authors = tuple(sorted({author for author in self._author if author is not None}))
        code: dict[str | None, int] = {None: UNKNOWN} | {author: index for index, author in enumerate(authors)}
        shown = np.array(self._shown, np.int64)
        return Traits(
            unit=np.array(self._unit, np.int32),
            left_place=shown >> 2 * _BITS,
            right_place=shown >> _BITS & _MASK,
            num_shown=shown & _MASK,
            length=np.array(self._length, np.int32),
            author=np.array([code[author] for author in self._author], np.int32),
            authors=authors,
        )

    def _look(self, case: Case) -> None:
        """Only numbers are kept: names that stayed alive would make the next line dearer to read."""
        self._unit.append(unit_of(case.prompt.id))
        add, admits = self._shown.append, self._only.admits
        for judgment in case.judgments if self._admits_all else filter(admits, case.judgments):
            shown = judgment.shown
            if not shown:
                add(0)
                continue
            try:
                add(shown.index(judgment.left) << 2 * _BITS | shown.index(judgment.right) << _BITS | len(shown))
            except ValueError:  # what was shown does not name both: it is not known where they stood
                add(0)
        self._length.extend(
            [num_characters(response) if response.text is None else len(response.text) for response in case.responses]
        )
        self._author += [response.author for response in case.responses]


def unit_of(prompt: str) -> int:
    """The unit of a prompt id: parallel items of one id, and the few that share a number by chance, go together."""
    return zlib.crc32(prompt.encode("utf-8", "surrogatepass")) % MOST_UNITS


def num_characters(response: Response) -> int:
    """The length of the answer in code points; of an answer with several turns, of all turns."""
    if response.text is not None:
        return len(response.text)
    return sum(len(message.content) for message in response.messages or ())
