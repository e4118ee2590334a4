"""Distant supervision: a reward model's scores decide which verdicts of a cheaper judge are kept (CHEEMS, section 4.2).

Every function takes verdicts as integer columns (`Verdicts`), and says for each entry the rule that dropped it. The
paper names the step and not its rule; the three policies here are what the step can mean.
"""

from typing import Literal, NamedTuple

import numpy as np
from numpy.typing import NDArray

from steelyard.ranking.judgment_table import NONE, TIE, Integers, Verdicts

Policy = Literal["agree", "cycles", "weight"]
Floats = NDArray[np.float64]

RULES = (
    "kept",
    "unreadable",
    "tie",
    "unscored",
    "disagrees",
    "below tau",
    "inside a tie",
    "least supported in a cycle",
)
KEPT, UNREADABLE, TIED, UNSCORED, DISAGREES, BELOW_TAU, INSIDE_TIE, LEAST_SUPPORTED = range(len(RULES))
"""The rules' positions in ``RULES``: what a policy gives for each judgment."""


class Weighted(NamedTuple):
    """One entry a pair of a graph that has a strict verdict, pointing from the response that the verdict prefers."""

    graph: Integers
    better: Integers
    worse: Integers
    weight: Floats


def margins_of(verdicts: Verdicts, scores: Floats, first: Integers) -> Floats:
    """How far the model is with each strict verdict: its preferred response's score minus the other's.

    ``scores`` are flat, NaN where a response has none; ``first`` is where each graph's scores begin. NaN for ties and
    unreadable verdicts, and where either score is missing.
    """
    start = first[verdicts.graph]
    margin = scores[start + verdicts.better] - scores[start + verdicts.worse]
    return np.where(verdicts.is_strict, margin, np.nan)


def agree(verdicts: Verdicts, margin: Floats, *, tau: float, keep_ties: bool = False) -> Integers:
    """The rule for each verdict: a strict one stays if its margin is above 0 and at least ``tau``, a tie if so asked.

    What stays without ties has no cycle: scores fall along every edge. Kept ties can close cycles again, which the
    ranking resolves as it resolves any.
    """
    rule = np.full(len(verdicts.graph), KEPT)
    rule[margin < tau] = BELOW_TAU
    rule[margin <= 0] = DISAGREES
    rule[np.isnan(margin)] = UNSCORED
    rule[verdicts.verdict == TIE] = KEPT if keep_ties else TIED
    rule[verdicts.verdict == NONE] = UNREADABLE
    return rule


def cut_cycles(verdicts: Verdicts, margin: Floats, num_responses: Integers) -> Integers:
    """The rule for each verdict: in every cycle the verdicts go that the model supports least, until none is left.

    Tied responses, and those tied to them, are first merged into one; a strict verdict between merged responses is
    dropped. Then in each strongly connected component the pair (a preferred response and the other, all its repeats)
    with the smallest margin goes; components that still have a cycle are taken again. An unscored pair has margin 0:
    the model says nothing for or against it. Equal margins: the pair of lowest positions goes.
    """
    rule = np.where(verdicts.verdict == NONE, UNREADABLE, KEPT)
    first = np.concatenate([[0], np.cumsum(num_responses)])
    start, num_nodes = first[verdicts.graph], int(first[-1])
    tied = verdicts.verdict == TIE
    merged = _components(start[tied] + verdicts.left[tied], start[tied] + verdicts.right[tied], num_nodes, "weak")
    better, worse = start + verdicts.better, start + verdicts.worse
    rule[verdicts.is_strict & (merged[better] == merged[worse])] = INSIDE_TIE
    pair = better * (num_nodes + 1) + worse
    support = np.nan_to_num(margin, nan=0.0)
    active = np.flatnonzero(verdicts.is_strict & (rule == KEPT))
    while len(active):
        label = _components(merged[better[active]], merged[worse[active]], num_nodes, "strong")
        component = label[merged[better[active]]]
        is_inside = component == label[merged[worse[active]]]
        active, component = active[is_inside], component[is_inside]
        order = np.lexsort((pair[active], support[active], component))
        _, leading = np.unique(component[order], return_index=True)
        goes = np.isin(pair[active], pair[active][order[leading]])
        rule[active[goes]] = LEAST_SUPPORTED
        active = active[~goes]
    return rule


def pair_weights(verdicts: Verdicts, margin: Floats, *, scale: float = 1.0) -> Weighted:
    """Soft weights: each strict verdict counts as much as the model believes it, sigmoid(margin / ``scale``).

    Under Bradley-Terry that is the model's probability that the verdict is right. Repeats of a verdict add up; a pair
    with verdicts both ways stands in it both ways. An unscored verdict counts a half. Ties prefer nobody: no pair.
    """
    chosen = np.flatnonzero(verdicts.is_strict)
    strict = verdicts.where(verdicts.is_strict)
    belief = 0.5 + 0.5 * np.tanh(np.nan_to_num(margin[chosen], nan=0.0) / (2 * scale))
    span = int(max(strict.left.max(initial=0), strict.right.max(initial=0))) + 1
    key = (strict.graph.astype(np.int64) * span + strict.better) * span + strict.worse
    pairs, place = np.unique(key, return_inverse=True)
    weight = np.bincount(place, belief, minlength=len(pairs)).astype(np.float64)
    return Weighted(pairs // span**2, pairs // span % span, pairs % span, weight)


def _components(start: Integers, end: Integers, num_nodes: int, connection: Literal["weak", "strong"]) -> Integers:
    """The component of every node of a graph, as a number."""
    from scipy.sparse import coo_array
    from scipy.sparse.csgraph import connected_components

    edges = coo_array((np.ones(len(start), np.int8), (start, end)), shape=(num_nodes, num_nodes)).tocsr()
    return connected_components(edges, directed=True, connection=connection)[1]
