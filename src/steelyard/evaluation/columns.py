"""A bench and its scores as columns: the arrays that measures need, without texts.

Each batch of cases is reduced to columns, which are joined at the end. Memory grows by a few numbers per response and
one name per prompt for any length of the answers.
"""

from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from typing import NamedTuple

import msgspec
import numpy as np

from steelyard.core.numerics import Booleans, Floats, Integers
from steelyard.core.text import num_characters
from steelyard.core.types import Case, Prompt, Response, Scores
from steelyard.curation.input_checks import are_unwinnable
from steelyard.ranking.pairs import PairChoice, num_beyond_listed, pairs_of
from steelyard.statistics.groups import Cell, cell_of, common_cells, prompt_names
from steelyard.statistics.pair_counts import ExactRule

UNRANKED = -1
_MOST_PLACES = 2**32
_CELLS_AT_A_TIME = 4_000_000
_NOBODY = Case(prompt=Prompt(id="", messages=()), responses=())


class BenchColumns(NamedTuple):
    """Cases as columns, in order. Responses are numbered through the whole bench; ``start`` is each case's first."""

    names: tuple[tuple[str, ...], ...]
    """The names of each case's prompt: prompts that share a name are resampled together."""
    cells: tuple[Cell, ...]
    """Category, subset and language of each case."""
    start: Integers
    """First response of each case; shape (case,)."""
    included: Booleans
    """True for cases that count; shape (case,)."""
    prompt: Integers
    """The case of each comparable pair; shape (pair,)."""
    better: Integers
    worse: Integers
    tier: Integers
    """The tier of each response, 0 the best, or `UNRANKED`; shape (response,)."""
    length: Integers
    """Unicode code points; shape (response,)."""
    ratings: Mapping[str, Floats]
    """Mean rating by dimension, NaN for none; shape (response,) each."""
    judged: Mapping[int, Case]
    """The cases with judgments, without texts, by position."""
    num_unlisted: int
    """The number of pairs that the choice adds to those that the cases list."""
    unwinnable: Integers
    """Case, better and worse response of each pair of equal texts, which no model can win; shape (3, pair)."""

    @property
    def case_of(self) -> Integers:
        """The case of each response; shape (response,)."""
        sizes = np.diff(np.append(self.start, len(self.tier)))
        return np.repeat(np.arange(len(self.start)), sizes)

    def judged_cases(self, chosen: Booleans) -> list[Case]:
        """Return the chosen cases in order, with an empty case for each without judgments."""
        return [self.judged.get(index, _NOBODY) for index in np.flatnonzero(chosen).tolist()]


class ScoreColumns(NamedTuple):
    """A model's scores of all responses, NaN if missing; shape (response,).

    ``reasons`` has the reason for each missing score, ``cut`` the responses that were cut at the length limit.
    """

    score: Floats
    reasons: Mapping[int, str]
    cut: Integers


class SameSize(NamedTuple):
    """Prompts with equally many responses, shape (prompt,), and the positions of these, shape (prompt, response)."""

    prompts: Integers
    rows: Integers


def prompts_by_size(
    prompt: Integers, num_prompts: int, *, cells_of: Callable[[int], int] = lambda size: size**2
) -> Iterator[SameSize]:
    """Yield the prompts with two responses or more, those of one size together; ``prompt`` is sorted, by response.

    ``cells_of`` is the number of cells that the caller makes of a prompt of a size, by default one for each pair.
    """
    counts = np.bincount(prompt, minlength=num_prompts)
    start = np.cumsum(counts) - counts
    for size in np.unique(counts[counts > 1]).tolist():
        prompts = np.flatnonzero(counts == size)
        step = max(1, _CELLS_AT_A_TIME // cells_of(size))
        for first in range(0, len(prompts), step):
            batch = prompts[first : first + step]
            yield SameSize(batch, start[batch][:, None] + np.arange(size))


def bench_columns(
    cases: Sequence[Case],
    choice: PairChoice | None,
    rule: ExactRule,
    resample_ids: Callable[[Case], tuple[str, ...]] = prompt_names,
    *,
    counts_unwinnable: bool = False,
) -> BenchColumns:
    """Return the columns of one batch of cases.

    A case without a comparable pair is excluded. Pairs of equal texts are none, and a text that a ranking has in two
    tiers has the better one, unless the arithmetic of a published benchmark ``counts_unwinnable`` pairs.
    Differs from: the published CHEEMS code (rule ``cheems``), which includes a case if it has a ranking.
    """
    sizes = [len(case.responses) for case in cases]
    start = np.cumsum([0, *sizes])[:-1]
    tiers = _tiers(cases)
    pairs = _pairs_across_tiers(tiers, np.array(sizes, np.int64))
    listed = [
        index for index, case in enumerate(cases) if (case.pairs is not None if choice is None else choice != "tiers")
    ]
    if listed:
        chosen = [_chosen_pairs(cases[index], choice, index, int(start[index])) for index in listed]
        pairs = pairs[:, ~np.isin(pairs[0], listed)]
        pairs = np.concatenate([pairs, *chosen], axis=1)
        pairs = pairs[:, np.argsort(pairs[0], kind="stable")]
    is_unwinnable = are_unwinnable(cases, within_cases(pairs, start))
    unwinnable, tier = pairs[:, is_unwinnable], tiers[0]
    if not counts_unwinnable:
        pairs = pairs[:, ~is_unwinnable]
        lower = unwinnable[2][tier[unwinnable[2]] > tier[unwinnable[1]]]
        tier[lower] = UNRANKED
    prompt, better, worse = pairs
    included = np.bincount(prompt, minlength=len(cases)) > 0
    if rule == "cheems":
        included |= np.array([case.ranking is not None for case in cases], dtype=bool)
    # Equal cells are one object, here and where a worker's columns arrive.
    cells: dict[Cell, Cell] = {}
    lengths = [num_characters(response) for case in cases for response in case.responses]
    return BenchColumns(
        names=tuple(resample_ids(case) for case in cases),
        cells=tuple(cells.setdefault(cell, cell) for cell in map(cell_of, cases)),
        start=start.astype(np.int64),
        included=included,
        prompt=prompt,
        better=better,
        worse=worse,
        tier=tier,
        length=np.array(lengths, np.int64),
        ratings=_ratings(cases, start, sum(sizes)),
        judged={index: _without_texts(case) for index, case in enumerate(cases) if case.judgments},
        num_unlisted=sum(num_beyond_listed(case, pairs_of(case, choice)) for case in cases if choice and case.pairs),
        unwinnable=unwinnable,
    )


def within_cases(pairs: Integers, start: Integers) -> Integers:
    """Return pairs of responses of the whole bench, shape (3, pair), by their positions within each case."""
    return np.stack([pairs[0], *(pairs[1:] - start[pairs[0]])])


def score_columns(lines: Iterable[Scores]) -> ScoreColumns:
    """Return the scores of one batch, response by response in the order of each line."""
    scores: list[float | None] = []
    reasons: dict[int, str] = {}
    cut: list[int] = []
    for line in lines:
        if line.unscored or line.cut:
            place_of = {name: len(scores) + place for place, name in enumerate(line.scores)}
            reasons |= {place_of[name]: reason for name, reason in line.unscored.items()}
            cut += [place_of[name] for name in line.cut]
        scores += line.scores.values()
    # In an array of floats None becomes NaN.
    return ScoreColumns(np.array(scores, np.float64), reasons, np.array(cut, np.int64))


def join_bench(parts: Sequence[BenchColumns]) -> BenchColumns:
    """Return the columns of all batches as those of one bench."""
    cases = np.cumsum([0, *(len(part.start) for part in parts)]).tolist()
    responses = np.cumsum([0, *(len(part.tier) for part in parts)]).tolist()
    dimensions = sorted({dimension for part in parts for dimension in part.ratings})
    return BenchColumns(
        names=tuple(names for part in parts for names in part.names),
        cells=tuple(common_cells([cell for part in parts for cell in part.cells])),
        start=_joined([part.start + first for part, first in zip(parts, responses, strict=False)]),
        included=np.concatenate([part.included for part in parts]) if parts else np.zeros(0, dtype=bool),
        prompt=_joined([part.prompt + first for part, first in zip(parts, cases, strict=False)]),
        better=_joined([part.better + first for part, first in zip(parts, responses, strict=False)]),
        worse=_joined([part.worse + first for part, first in zip(parts, responses, strict=False)]),
        tier=_joined([part.tier for part in parts]),
        length=_joined([part.length for part in parts]),
        ratings={
            dimension: np.concatenate([part.ratings.get(dimension, np.full(len(part.tier), np.nan)) for part in parts])
            for dimension in dimensions
        },
        judged={
            first + index: case
            for part, first in zip(parts, cases, strict=False)
            for index, case in part.judged.items()
        },
        num_unlisted=sum(part.num_unlisted for part in parts),
        unwinnable=np.concatenate(
            [
                np.zeros((3, 0), np.int64),
                *(
                    part.unwinnable + np.array([[case], [response], [response]])
                    for part, case, response in zip(parts, cases, responses, strict=False)
                ),
            ],
            axis=1,
        ),
    )


def join_scores(parts: Sequence[ScoreColumns]) -> ScoreColumns:
    """Return the scores of all batches as those of one bench."""
    starts = np.cumsum([0, *(len(part.score) for part in parts)]).tolist()
    placed = list(zip(parts, starts, strict=False))
    return ScoreColumns(
        np.concatenate([np.zeros(0), *(part.score for part in parts)]),
        {first + place: reason for part, first in placed for place, reason in part.reasons.items()},
        _joined([part.cut + first for part, first in placed]),
    )


def _joined(parts: Sequence[Integers]) -> Integers:
    return np.concatenate(parts) if parts else np.zeros(0, np.int64)


def _tiers(cases: Sequence[Case]) -> Integers:
    """Return the tier of each response and its position in the ranking from best to worst: shape (2, response).

    The position of an unranked response is arbitrary.
    """
    codes: list[int] = []
    for case in cases:
        code_of: dict[str, int] = {}
        for tier, names in enumerate(case.ranking or ()):
            for name in names:
                code_of[name] = tier * _MOST_PLACES + len(code_of)
        codes += [code_of.get(response.id, UNRANKED) for response in case.responses]
    return np.stack(np.divmod(np.array(codes, np.int64), _MOST_PLACES))


def _pairs_across_tiers(tiers: Integers, sizes: Integers) -> Integers:
    """Return case, better and worse response of every pair across tiers, shape (3, pair), in order of the rankings."""
    case_of = np.repeat(np.arange(len(sizes)), sizes)
    tier, place = tiers
    parts: list[Integers] = [np.zeros((3, 0), np.int64)]
    for prompts, rows in prompts_by_size(case_of, len(sizes)):
        tiers_of = tier[rows]
        is_ranked = tiers_of != UNRANKED
        is_better = (tiers_of[:, :, None] < tiers_of[:, None, :]) & is_ranked[:, :, None] & is_ranked[:, None, :]
        row, better, worse = np.nonzero(is_better)
        parts.append(np.stack([prompts[row], rows[row, better], rows[row, worse]]).astype(np.int64, copy=False))
    pairs = np.concatenate(parts, axis=1)
    # Sort by case and ranking: the loop above groups cases by size.
    return pairs[:, np.lexsort((place[pairs[2]], place[pairs[1]], pairs[0]))]


def _chosen_pairs(case: Case, choice: PairChoice | None, index: int, first: int) -> Integers:
    # A pair listed twice is one pair; weights are for training.
    chosen = dict.fromkeys((pair.better, pair.worse) for pair in pairs_of(case, choice))
    return np.array([(index, first + better, first + worse) for better, worse in chosen], np.int64).reshape(-1, 3).T


def _ratings(cases: Sequence[Case], start: Integers, size: int) -> dict[str, Floats]:
    """Return the mean rating of each response by dimension; all raters of a response have equal weight."""
    by_dimension: dict[str, dict[int, list[float]]] = {}
    for case, first in zip(cases, start.tolist(), strict=True):
        if not case.ratings:
            continue
        position = {response.id: first + place for place, response in enumerate(case.responses)}
        for rating in case.ratings:
            by_dimension.setdefault(rating.dimension, {}).setdefault(position[rating.response], []).append(rating.value)
    means: dict[str, Floats] = {}
    for dimension, values in by_dimension.items():
        means[dimension] = np.full(size, np.nan)
        means[dimension][list(values)] = [sum(ratings) / len(ratings) for ratings in values.values()]
    return means


def _without_texts(case: Case) -> Case:
    prompt = msgspec.structs.replace(case.prompt, messages=(), reference=None, meta=None)
    responses = tuple(Response(id=response.id, text="") for response in case.responses)
    return msgspec.structs.replace(case, prompt=prompt, responses=responses, ratings=(), meta={})
