"""The line of a case with another ranking: most of a line is texts, which need not be encoded again, nor travel."""

from typing import NamedTuple

import msgspec

from steelyard.core.types import Case, Ranking
from steelyard.io.cases import encode_case

_encoder = msgspec.json.Encoder()


class Opened(NamedTuple):
    """A line cut open where its ranking stands: the line's first ``kept`` bytes, then ``start``; ``after`` follows."""

    kept: int
    start: bytes
    after: bytes


def open_line(line: bytes, case: Case) -> Opened:
    """Cut the line, which must hold the case. If it does not end as we write cases, it is written anew (``kept`` 0).

    That the line ends with exactly our ``,"ranking":…,"pairs":…,"meta":…}`` is enough: it is valid JSON, so its last
    brace closes the case itself, and the keys before that brace are the case's own.
    """
    after = b',"pairs":' + _encoder.encode(case.pairs) + b',"meta":' + _encoder.encode(case.meta) + b"}\n"
    end = b',"ranking":' + _encoder.encode(case.ranking) + after
    if line.endswith(end):
        return Opened(len(line) - len(end), b"", after)
    return Opened(0, encode_case(case)[: -len(end)], after)


def close_line(opened: Opened, ranking: Ranking | None) -> bytes:
    """What follows the ``kept`` bytes when the case has this ranking."""
    return opened.start + b',"ranking":' + _encoder.encode(ranking) + opened.after
