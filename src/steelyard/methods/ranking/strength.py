"""The strength of response authors from verdicts between them: Bradley-Terry, with half ties or Davidson's.

P(one is preferred to the other) = sigmoid(strength of one - strength of the other), in natural logarithms of odds
(Bradley and Terry, 1952). ``half`` counts a tie as half a verdict each way. ``davidson`` gives ties a probability of
their own, proportional to the root of the product of both, with one parameter for how common they are (Davidson, 1970).

The maximum exists only if nobody can be parted from the rest by wins alone: the graph of wins is strongly connected.
Where it is not, a weak prior (a few hundredths of a verdict each way against an author of middle strength) makes the
answer finite, and ``is_regularised`` says so.
"""

from typing import Literal, NamedTuple

import numpy as np

from steelyard.methods.measures.accuracy import Booleans, Floats

Ties = Literal["half", "davidson"]

PRIOR_VERDICTS = 0.05
"""How many wins, and as many losses, each author is given against an author of strength 0 where a prior is needed."""
_MOST_STEPS = 100
_MOST_HALVINGS = 30
_CLOSE = 1e-9
_CELLS_AT_A_TIME = 2_000_000


class Strengths(NamedTuple):
    """Of each problem: ``strength`` [problem, author] with mean 0, and the logarithm of the tie parameter, or NaN."""

    strength: Floats
    tie: Floats
    is_regularised: Booleans


class _Problem(NamedTuple):
    """Sufficient counts: ``wins`` [problem, one, other], ``ties`` symmetric, ``prior`` [problem]."""

    wins: Floats
    ties: Floats
    prior: Floats
    has_ties: Booleans


class _State(NamedTuple):
    strength: Floats
    tie: Floats


def strengths(wins: Floats, ties: Floats, rule: Ties = "half") -> Strengths:
    """The maximum likelihood of each problem, by damped Newton steps in float64.

    ``wins[p, i, j]`` is how often i was preferred to j, ``ties[p, i, j]`` = ``ties[p, j, i]`` how often neither was.
    """
    size = max(1, _CELLS_AT_A_TIME // max(1, wins.shape[1] ** 2))
    parts = [_solved(wins[at : at + size], ties[at : at + size], rule) for at in range(0, len(wins), size)]
    return Strengths(*(np.concatenate(columns) for columns in zip(*parts, strict=True)))


def is_strongly_connected(wins: Floats) -> Booleans:
    """Whether a chain of wins leads from each author to each other one: ``[problem, one, other]`` to ``[problem]``."""
    reach = ((wins > 0) | np.eye(wins.shape[1], dtype=np.bool_)).astype(np.float32)
    for _ in range(max(1, int(np.ceil(np.log2(max(2, wins.shape[1])))))):
        reach = (reach @ reach > 0).astype(np.float32)
    return np.asarray(reach.all(axis=(1, 2)))


def _solved(wins: Floats, ties: Floats, rule: Ties) -> Strengths:
    connected = is_strongly_connected(wins + ties)
    # Without a strict verdict the tie parameter would grow without end: such ties say that all are equal, no more.
    is_half = np.full(len(wins), rule == "half") | (wins.sum(axis=(1, 2)) == 0)
    halved = is_half[:, None, None]
    wins, ties = np.where(halved, wins + ties / 2, wins), np.where(halved, 0.0, ties)
    has_ties = ties.sum(axis=(1, 2)) > 0
    problem = _Problem(wins, ties, np.where(connected, 0.0, PRIOR_VERDICTS), has_ties)
    state = _State(np.zeros(wins.shape[:2]), np.where(has_ties, 0.0, -np.inf))
    for _ in range(_MOST_STEPS):
        state, moved = _stepped(problem, state)
        if moved < _CLOSE:
            break
    centred = state.strength - state.strength.mean(axis=1, keepdims=True)
    return Strengths(centred, np.where(has_ties, state.tie, np.nan), ~connected)


def _stepped(problem: _Problem, state: _State) -> tuple[_State, float]:
    """One Newton step, halved for each problem until its likelihood does not fall; how far the farthest moved."""
    step = _newton(problem, state)
    before, scale = _likelihood(problem, state), np.ones(len(step))
    after = _moved(state, step)
    for _ in range(_MOST_HALVINGS):
        falls = _likelihood(problem, after) < before - 1e-12 * np.abs(before)
        if not falls.any():
            break
        scale = np.where(falls, scale / 2, scale)
        after = _moved(state, step * scale[:, None])
    return after, float(np.abs(step * scale[:, None]).max(initial=0.0))


def _moved(state: _State, step: Floats) -> _State:
    return _State(state.strength + step[:, :-1], state.tie + step[:, -1])


def _odds(state: _State) -> tuple[Floats, Floats, Floats]:
    """The probabilities that one is preferred, that the other is, and of a tie: each ``[problem, one, other]``."""
    half = (state.strength[:, :, None] - state.strength[:, None, :]) / 2
    tie = state.tie[:, None, None]
    top = np.maximum(np.abs(half), tie)
    one, other, tied = np.exp(half - top), np.exp(-half - top), np.exp(tie - top)
    total = one + other + tied
    return one / total, other / total, tied / total


def _likelihood(problem: _Problem, state: _State) -> Floats:
    one, _, tied = _odds(state)
    pairs = problem.wins * np.log(one)
    tiny = np.finfo(np.float64).tiny
    ties = np.where(problem.ties > 0, problem.ties * np.log(np.maximum(tied, tiny)), 0.0) / 2
    prior = -problem.prior * (np.logaddexp(0.0, state.strength) + np.logaddexp(0.0, -state.strength)).sum(axis=1)
    return (pairs + ties).sum(axis=(1, 2)) + prior


def _newton(problem: _Problem, state: _State) -> Floats:
    """The step in all strengths and the tie parameter, ``[problem, author + 1]``; the mean strength is held at 0."""
    one, other, tied = _odds(state)
    number = problem.wins + problem.wins.transpose(0, 2, 1) + problem.ties
    excess = one - other
    gradient = (problem.wins - problem.wins.transpose(0, 2, 1) - number * excess).sum(axis=2) / 2
    sigmoid = 1 / (1 + np.exp(-state.strength))
    gradient += problem.prior[:, None] * (1 - 2 * sigmoid)
    slope = (problem.ties - number * tied).sum(axis=(1, 2)) / 2

    num_authors = number.shape[1]
    curvature = np.zeros((len(number), num_authors + 1, num_authors + 1))
    spread = number * ((one + other) - excess**2) / 4
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
    # Only differences of strengths are determined: the direction in which all move together is pinned.
    curvature[:, :-1, :-1] += (problem.prior == 0)[:, None, None] / num_authors
    flat = np.concatenate([gradient, slope[:, None]], axis=1)
    return np.asarray(np.linalg.solve(curvature, flat[..., None])[..., 0], np.float64)
