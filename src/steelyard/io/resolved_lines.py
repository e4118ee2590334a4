"""Batches of case lines resolved by workers: decoded once, ranked, and cut so that only new ends are sent back."""

import hashlib
from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import NamedTuple

import msgspec
import numpy as np

from steelyard.core.checks import check_case, check_frame
from steelyard.core.errors import UserError
from steelyard.core.types import Case
from steelyard.io.cases import SplitLine, decode_batch, decode_case, line_end, read_cases, split_line
from steelyard.io.lines import LineBatch
from steelyard.ranking.annotation_features import TraitCollector
from steelyard.ranking.batch_totals import BatchSums, resolve_and_sum
from steelyard.ranking.dawid_skene import RaterFit, VoteColumns, vote_columns
from steelyard.ranking.judgment_table import JudgmentTable, judgment_table
from steelyard.ranking.resolution import Config

_DIGEST_BYTES = 16


class ResolvedBatch(NamedTuple):
    """The result of one batch: the new ends of its lines, a digest of each case's key, and sums that add up.

    Line i becomes its first ``num_prefix[i]`` bytes and then ``ends[i]``: the texts of a line are not sent back.
    """

    num_prefix: tuple[int, ...]
    ends: tuple[bytes, ...]
    digests: bytes
    sums: BatchSums

    def join(self, lines: Sequence[bytes]) -> bytes:
        """Return the lines with their new ends.

        Views copy each byte once, where slices would copy a line for every cut.
        """
        return b"".join(
            [
                piece
                for line, num_prefix, end in zip(lines, self.num_prefix, self.ends, strict=True)
                for piece in (memoryview(line)[:num_prefix], end)
            ]
        )


def collect_votes(config: Config, batch: LineBatch) -> VoteColumns:
    """Decode and check one batch of lines and return its votes: the first pass of a worker."""
    return vote_columns(_decode(config, batch).table)


def resolve_batch(config: Config, raters: RaterFit | None, batch: LineBatch) -> ResolvedBatch:
    """Decode, check and resolve one batch of lines: the work of a worker."""
    decoded = _decode(config, batch)
    rankings, sums = resolve_and_sum(decoded.table, decoded.traits, config, raters)
    ends = tuple(map(line_end, decoded.opened, rankings))
    num_prefix = tuple([line.num_prefix for line in decoded.opened])
    return ResolvedBatch(num_prefix, ends, decoded.digests, sums)


class _DecodedBatch(NamedTuple):
    """A batch read once: the lines cut open, a digest of each case's key, and its integer columns."""

    opened: list[SplitLine]
    digests: bytes
    table: JudgmentTable
    traits: TraitCollector


def _decode(config: Config, batch: LineBatch) -> _DecodedBatch:
    opened: list[SplitLine] = []
    digests = bytearray()
    traits = TraitCollector()
    looks_up_all = config.quality and config.only.admits_all
    # The table looks up every id of the judgments that it admits: where it admits all, the frame alone is checked.
    check = check_frame if looks_up_all else check_case

    def cases() -> Iterator[Case]:
        for place, line in batch.placed():
            case = decode_case(line, place, check)
            opened.append(split_line(line, case))
            digests.extend(hashlib.blake2b(msgspec.json.encode(case.key), digest_size=_DIGEST_BYTES).digest())
            yield case

    try:
        table = judgment_table(cases(), config.only, traits.add if config.quality else None)
    except (KeyError, UserError):
        decode_batch(batch)  # names the first error of the file, whichever check finds it
        raise
    if (table.verdicts.left == table.verdicts.right).any():
        decode_batch(batch)
    return _DecodedBatch(opened, bytes(digests), table, traits)


def refuse_repeated_keys(path: Path, digests: bytearray) -> None:
    """Raise RecordError for keys that are not unique.

    Only digests are held, so a repeated key is looked up again in the file.
    """
    keys = np.frombuffer(digests, f"V{_DIGEST_BYTES}")
    if len(np.unique(keys)) < len(keys):
        for _ in read_cases(path):  # raises at the line of the repeated key
            pass


def num_keys(digests: bytearray) -> int:
    """Return the number of cases with these digests."""
    return len(digests) // _DIGEST_BYTES
