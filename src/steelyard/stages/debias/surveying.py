"""The first pass of debiasing: of every pair, numbers only."""

from array import array
from collections.abc import Callable, Iterable, Iterator
from pathlib import Path
from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from steelyard.core.errors import EvidenceError
from steelyard.core.text import num_characters, num_markdown_marks, response_text
from steelyard.core.types import Case, Response, Scores
from steelyard.curation import debiasing
from steelyard.io.cases import read_cases
from steelyard.io.progress import track
from steelyard.io.score_files import read_scored
from steelyard.ranking.judgment_table import Integers
from steelyard.ranking.pairs import IndexedPair, num_beyond_listed, pairs_of
from steelyard.stages.debias.settings import Config

Length = Callable[[Response], float]


class Survey(NamedTuple):
    """One entry a pair of the file, in order, and the names that ``group`` numbers.

    ``margin`` is the model's score of the better response minus that of the worse, NaN where it has none.
    ``num_unlisted`` counts the pairs that their case, which lists pairs, does not list.
    """

    side: Integers
    group: Integers
    priority: NDArray[np.uint64]
    prompt: Integers
    is_matched: NDArray[np.bool_]
    is_longer: NDArray[np.bool_]
    margin: NDArray[np.float64]
    groups: tuple[tuple[str, ...], ...]
    pairs_of_case: Integers
    num_unlisted: int = 0


def length_of(tokenizer: str | None) -> Length:
    """The length of a response: characters, or tokens of a tokenizer without the marks that it adds."""
    if tokenizer is None:
        return num_characters
    from steelyard.networks.loading import load_tokenizer

    made = load_tokenizer(tokenizer)
    made.model_max_length = 2**62  # counting needs no limit, and no warning of one

    def num_tokens(response: Response) -> float:
        return float(len(made(response_text(response), add_special_tokens=False, split_special_tokens=True).input_ids))

    return num_tokens


def with_scores(cases: Path, scores: Path | None) -> Iterator[tuple[Case, Scores | None]]:
    """Each case with its scores, null where none are given."""
    if scores is not None:
        yield from read_scored(read_cases(cases), scores)
        return
    for case in read_cases(cases):
        yield case, None


def survey(cases: Iterable[tuple[Case, Scores | None]], config: Config, length: Length) -> Survey:
    """One entry a pair of each case, in order."""
    side, matched, longer = array("b"), array("b"), array("b")
    group, prompt, per_case = array("q"), array("q"), array("q")
    priority, margin = array("Q"), array("d")
    groups: dict[tuple[str, ...], int] = {}
    prompts: dict[str, int] = {}
    num_unlisted = 0
    for case, scores in track(cases, "debias: measuring"):
        pairs = pairs_of(case, config.pairs)
        lengths = [length(response) for response in case.responses]
        per_case.append(len(pairs))
        num_unlisted += num_beyond_listed(case, pairs)
        for pair, sided in zip(pairs, _sided(case, pairs, lengths, config), strict=True):
            side.append(sided.side)
            group.append(groups.setdefault(sided.group, len(groups)))
            priority.append(debiasing.priority(case, pair, seed=config.seed))
            prompt.append(prompts.setdefault(case.prompt.id, len(prompts)))
            matched.append(debiasing.is_matched(pair, lengths, config.closeness))
            longer.append(lengths[pair.better] > lengths[pair.worse])
            margin.append(_margin(case, pair, scores))
    return Survey(
        side=np.array(side, np.int64),
        group=np.array(group, np.int64),
        priority=np.array(priority, np.uint64),
        prompt=np.array(prompt, np.int64),
        is_matched=np.array(matched, bool),
        is_longer=np.array(longer, bool),
        margin=np.array(margin, np.float64),
        groups=tuple(groups),
        pairs_of_case=np.array(per_case, np.int64),
        num_unlisted=num_unlisted,
    )


def check_pairs(found: Survey, config: Config, *, where: str) -> None:
    """Raises EvidenceError if there is nothing to balance."""
    if not len(found.side):
        raise EvidenceError("no case has a pair", where=where, do="rank the cases first: steelyard resolve")
    if config.by == "author" and not found.side.any():
        raise EvidenceError("no pair has two different known authors", where=where, do="debias by another feature")


def _sided(
    case: Case, pairs: tuple[IndexedPair, ...], lengths: list[float], config: Config
) -> tuple[debiasing.Sided, ...]:
    if config.by == "author":
        return debiasing.sided_by_author(case, pairs, config.within)
    if config.by == "markdown":
        marks = [num_markdown_marks(response) for response in case.responses]
        return debiasing.sided_by(case, pairs, marks, config.within)
    return debiasing.sided_by(case, pairs, lengths, config.within)


def _margin(case: Case, pair: IndexedPair, scores: Scores | None) -> float:
    if scores is None:
        return np.nan
    better = scores.scores[case.responses[pair.better].id]
    worse = scores.scores[case.responses[pair.worse].id]
    return np.nan if better is None or worse is None else better - worse
