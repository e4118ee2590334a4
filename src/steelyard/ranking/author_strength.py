"""The strength of response authors from verdicts between them: Bradley-Terry, with half ties or Davidson's.

P(one is preferred to the other) = sigmoid(strength of one - strength of the other), in natural logarithms of odds
(Bradley and Terry, 1952). ``half`` counts a tie as half a verdict each way. ``davidson`` gives ties a probability of
their own, proportional to the root of the product of both, with one parameter for how common they are (Davidson, 1970).

The maximum exists only if the graph of wins is strongly connected: no group of authors wins all comparisons with the
rest. Otherwise a weak prior (a few hundredths of a verdict each way against an author of middle strength) makes the
strengths finite, and ``is_regularised`` says so. Intervals come from a bootstrap over prompts.
"""

from typing import Literal, NamedTuple

import msgspec
import numpy as np

from steelyard.core.numerics import Booleans, Floats
from steelyard.core.types import Record
from steelyard.statistics.agreement import FIRST, SECOND, TIED
from steelyard.statistics.intervals import UNBOUNDED, Estimate, interval, one_sample
from steelyard.statistics.unit_bootstrap import Draws

Ties = Literal["half", "davidson"]

MOST_AUTHORS = 60
PRIOR_VERDICTS = 0.05
"""Wins, and as many losses, that the prior adds to each author against an author of strength 0."""
_MOST_STEPS = 100
_MOST_HALVINGS = 30
_CLOSE = 1e-9
"""The largest Newton step, in log-odds, at which the iteration has converged."""
_CELLS_AT_A_TIME = 2_000_000


class AuthorStrength(Estimate, frozen=True, kw_only=True):
    """The strength of one author, in natural logarithms of odds."""

    author: str


class AuthorStrengths(Record, frozen=True, kw_only=True):
    """Authors by strength, the strongest first.

    ``tie_parameter`` is Davidson's, null without ties. ``prior_verdicts`` is the weight of the prior, where it is used.
    """

    strengths: tuple[AuthorStrength, ...]
    ties: Ties
    tie_parameter: float | None
    is_regularised: bool
    share_of_resamples_regularised: float
    prior_verdicts: float
    num_verdicts: int
    num_authors_left_out: int


class Strengths(NamedTuple):
    """For each problem: ``strength`` (problem, author) with mean 0, and the logarithm of the tie parameter, or NaN."""

    strength: Floats
    tie: Floats
    is_regularised: Booleans


def author_strengths(draws: Draws, *, ties: Ties = "half", most_authors: int = MOST_AUTHORS) -> AuthorStrengths | None:
    """Fit the authors' strengths; None if no judgment compares answers of two known authors.

    Only the ``most_authors`` with the most verdicts are fitted, on the verdicts between them. A resample whose graph of
    wins is not strongly connected is fitted with the weak prior, and counted.
    """
    groups = [group for group in draws.groups if group[0] == "authors"]
    if not groups:
        return None
    names, number = _most_judged(draws, groups, most_authors)
    pairs = [group for group in groups if group[1] in names and group[2] in names]
    totals = draws.table(pairs)
    place = {name: index for index, name in enumerate(names)}
    first, second = (np.array([place[pair[side]] for pair in pairs]) for side in (1, 2))

    def fit(sums: Floats) -> Strengths:
        wins, tied = (np.zeros((len(sums), len(names), len(names))) for _ in range(2))
        wins[:, first, second], wins[:, second, first] = sums[..., FIRST], sums[..., SECOND]
        tied[:, first, second] = tied[:, second, first] = sums[..., TIED]
        return strengths(wins, tied, ties)

    point, resampled = fit(totals.point[None]), fit(totals.resampled)
    verdicts = np.zeros(len(names))
    np.add.at(verdicts, np.concatenate([first, second]), np.tile(totals.point.sum(axis=-1), 2))
    evidence = one_sample(float(totals.by_unit.any(axis=(1, 2)).sum()))
    estimates = [
        interval(float(strength), resampled.strength[:, index], verdicts[index], evidence, UNBOUNDED)
        for index, strength in enumerate(point.strength[0])
    ]
    order = np.argsort(-point.strength[0], kind="stable").tolist()
    return AuthorStrengths(
        strengths=tuple(
            AuthorStrength(author=names[index], **msgspec.structs.asdict(estimates[index])) for index in order
        ),
        ties=ties,
        tie_parameter=None if np.isnan(point.tie[0]) else float(np.exp(point.tie[0])),
        is_regularised=bool(point.is_regularised[0]),
        share_of_resamples_regularised=float(resampled.is_regularised.mean()),
        prior_verdicts=PRIOR_VERDICTS,
        num_verdicts=int(totals.point.sum()),
        num_authors_left_out=len(number) - len(names),
    )


def _most_judged(draws: Draws, groups: list[tuple[str, ...]], most: int) -> tuple[list[str], dict[str, float]]:
    """Return the authors with the most verdicts, and the number of verdicts of every author."""
    number: dict[str, float] = {}
    for group, total in zip(groups, draws.point(groups).sum(axis=-1).tolist(), strict=True):
        for name in group[1:]:
            number[name] = number.get(name, 0.0) + total
    return sorted(sorted(number), key=lambda name: -number[name])[:most], number


class _Problem(NamedTuple):
    """Sufficient counts: ``wins`` (problem, one, other), ``ties`` symmetric, ``prior`` (problem)."""

    wins: Floats
    ties: Floats
    prior: Floats
    has_ties: Booleans


class _StrengthState(NamedTuple):
    strength: Floats
    tie: Floats


def strengths(wins: Floats, ties: Floats, rule: Ties = "half") -> Strengths:
    """Maximise the likelihood of each problem, by damped Newton steps in float64.

    ``wins[p, i, j]`` counts verdicts for i over j, ``ties[p, i, j]`` = ``ties[p, j, i]`` those for neither.
    """
    size = max(1, _CELLS_AT_A_TIME // max(1, wins.shape[1] ** 2))
    parts = [_solve(wins[at : at + size], ties[at : at + size], rule) for at in range(0, len(wins), size)]
    return Strengths(*(np.concatenate(columns) for columns in zip(*parts, strict=True)))


def is_strongly_connected(wins: Floats) -> Booleans:
    """Return whether a chain of wins leads from each author to each other: (problem, one, other) to (problem)."""
    from scipy.sparse import coo_array
    from scipy.sparse.csgraph import connected_components

    # All problems form one graph without edges between them, so that one call finds the components of all.
    num_problems, size = wins.shape[:2]
    problem, winner, loser = np.nonzero(wins > 0)
    edges = (np.ones(len(problem), np.bool_), (problem * size + winner, problem * size + loser))
    graph = coo_array(edges, shape=(num_problems * size, num_problems * size))
    component = connected_components(graph, connection="strong")[1].reshape(num_problems, size)
    return (component == component[:, :1]).all(axis=1)


def _solve(wins: Floats, ties: Floats, rule: Ties) -> Strengths:
    """Fit problems of one size together; converged ones take steps of nearly 0 until all have converged."""
    # A tie is half a win each way, or in Davidson's model bounds the difference from both sides: an edge both ways.
    connected = is_strongly_connected(wins + ties)
    # Without a strict verdict the tie parameter would diverge: half ties then make all authors equal.
    is_half = np.full(len(wins), rule == "half") | (wins.sum(axis=(1, 2)) == 0)
    halved = is_half[:, None, None]
    wins, ties = np.where(halved, wins + ties / 2, wins), np.where(halved, 0.0, ties)
    has_ties = ties.sum(axis=(1, 2)) > 0
    problem = _Problem(wins, ties, np.where(connected, 0.0, PRIOR_VERDICTS), has_ties)
    state = _StrengthState(np.zeros(wins.shape[:2]), np.where(has_ties, 0.0, -np.inf))
    for _ in range(_MOST_STEPS):
        state, moved = _step(problem, state)
        if moved < _CLOSE:
            break
    centred = state.strength - state.strength.mean(axis=1, keepdims=True)
    return Strengths(centred, np.where(has_ties, state.tie, np.nan), ~connected)


def _step(problem: _Problem, state: _StrengthState) -> tuple[_StrengthState, float]:
    """Take one Newton step, halved for each problem until its likelihood does not fall; return the largest move too."""
    step = _newton(problem, state)
    before, scale = _log_likelihood(problem, state), np.ones(len(step))
    after = _add_step(state, step)
    for _ in range(_MOST_HALVINGS):
        # The margin keeps rounding at the maximum from halving the step without end.
        falls = _log_likelihood(problem, after) < before - 1e-12 * np.abs(before)
        if not falls.any():
            break
        scale = np.where(falls, scale / 2, scale)
        after = _add_step(state, step * scale[:, None])
    return after, float(np.abs(step * scale[:, None]).max(initial=0.0))


def _add_step(state: _StrengthState, step: Floats) -> _StrengthState:
    return _StrengthState(state.strength + step[:, :-1], state.tie + step[:, -1])


def _odds(state: _StrengthState) -> tuple[Floats, Floats, Floats]:
    """Return the probabilities of a win, a loss and a tie, each of shape (problem, one, other).

    Proportional to sqrt(a / b), sqrt(b / a) and the tie parameter (Davidson, 1970).
    """
    half = (state.strength[:, :, None] - state.strength[:, None, :]) / 2
    tie = state.tie[:, None, None]
    # Subtracting the largest exponent prevents overflow.
    top = np.maximum(np.abs(half), tie)
    win, loss, tied = np.exp(half - top), np.exp(-half - top), np.exp(tie - top)
    total = win + loss + tied
    return win / total, loss / total, tied / total


def _log_likelihood(problem: _Problem, state: _StrengthState) -> Floats:
    """Return the logarithm of likelihood times prior, (problem,)."""
    win, _, tied = _odds(state)
    pairs = problem.wins * np.log(win)
    tiny = np.finfo(np.float64).tiny
    # Halved: the symmetric table holds each tie twice.
    ties = np.where(problem.ties > 0, problem.ties * np.log(np.maximum(tied, tiny)), 0.0) / 2
    prior = -problem.prior * (np.logaddexp(0.0, state.strength) + np.logaddexp(0.0, -state.strength)).sum(axis=1)
    return (pairs + ties).sum(axis=(1, 2)) + prior


def _newton(problem: _Problem, state: _StrengthState) -> Floats:
    """Return the Newton step: gradient over negative Hessian, in all strengths and the log tie parameter.

    Shape (problem, author + 1). The mean strength stays 0.
    """
    win, loss, tied = _odds(state)
    number = problem.wins + problem.wins.transpose(0, 2, 1) + problem.ties
    excess = win - loss
    gradient = (problem.wins - problem.wins.transpose(0, 2, 1) - number * excess).sum(axis=2) / 2
    sigmoid = 1 / (1 + np.exp(-state.strength))
    gradient += problem.prior[:, None] * (1 - 2 * sigmoid)
    slope = (problem.ties - number * tied).sum(axis=(1, 2)) / 2

    num_authors = number.shape[1]
    curvature = np.zeros((len(number), num_authors + 1, num_authors + 1))
    spread = number * ((win + loss) - excess**2) / 4
    curvature[:, :-1, :-1] = -spread
    at = np.arange(num_authors)
    curvature[:, at, at] += spread.sum(axis=2) + 2 * problem.prior[:, None] * sigmoid * (1 - sigmoid)
    mixed = -(number * tied * excess).sum(axis=2) / 2
    curvature[:, -1, :-1] = curvature[:, :-1, -1] = mixed
    curvature[:, -1, -1] = (number * tied * (1 - tied)).sum(axis=(1, 2)) / 2
    slope, curvature[:, -1, -1] = (
        np.where(problem.has_ties, slope, 0.0),
        np.where(problem.has_ties, curvature[:, -1, -1], 1.0),
    )
    # The likelihood depends on differences only: a penalty on the common shift makes the matrix invertible.
    curvature[:, :-1, :-1] += (problem.prior == 0)[:, None, None] / num_authors
    flat = np.concatenate([gradient, slope[:, None]], axis=1)
    return np.asarray(np.linalg.solve(curvature, flat[..., None])[..., 0], np.float64)
