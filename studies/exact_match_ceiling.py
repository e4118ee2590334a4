"""How often the interval of the best exact match, by people's answers alone, contains the planted share.

    python studies/exact_match_ceiling.py [--replays 500] [--only whole] [--first-seed 0]

A true order is drawn for each prompt, and people answer all of its pairs with planted errors: by pair, each wrong with
the planted probability (`pairs`), or as whole rankings: draws of Mallows by repeated insertion (`insertion`), or the
order of the true places with normal noise (`utility`), which is not the model of the estimator. Labels are the tiers of
all answers, or of those of one person (CHEEMS, Algorithm 1). The planted share of prompts without a wrong label is that
of a large sample. Nothing here uses the estimator's formulas.
"""

from itertools import combinations
from typing import Annotated, NamedTuple

import numpy as np
import typer

from steelyard.core.numerics import Booleans, Integers, generator
from steelyard.ranking.judgment_table import Edges
from steelyard.ranking.tiers import tiers_of
from steelyard.statistics.bootstrap import draw_blocks
from steelyard.statistics.groups import Cell, Label
from steelyard.statistics.intervals import Estimate
from steelyard.statistics.whole_prompts import AnsweredPrompts, right_prompts

_LARGE = 60_000


class Setting(NamedTuple):
    """Prompts and responses of each, people, the planted error of an answer, how they err, and the rule of labels."""

    prompts: int
    responses: int
    people: int
    error: float
    errs: str
    rule: str


def answers_of(setting: Setting, num: int, random: np.random.Generator) -> Booleans:
    """Return whether each answer is right, (prompt, person, pair); the first response of a pair is always better."""
    size, people = setting.responses, setting.people
    pairs = list(combinations(range(size), 2))
    if setting.errs == "pairs":
        return random.random((num, people, len(pairs))) >= setting.error
    first, second = np.array(pairs).T
    noise = _noise(setting)
    if setting.errs == "utility":
        place = np.arange(size) + noise * random.normal(size=(num, people, size))
    else:
        # Repeated insertion: the response i goes before j of the i earlier ones with a probability of phi^j.
        place = np.zeros((num, people, size))
        for at in range(1, size):
            chance = noise ** np.arange(at + 1.0)
            before = (random.random((num, people))[..., None] > np.cumsum(chance / chance.sum())).sum(axis=2)
            new = at - before
            place[..., :at] += place[..., :at] >= new[..., None]
            place[..., at] = new
    return place[..., first] < place[..., second]


def _noise(setting: Setting) -> float:
    """Return the noise at which the mean error of a pair is the planted one, by bisection on a large sample."""
    low, high = 0.0, 1.0 if setting.errs == "insertion" else 20.0
    key = (setting.responses, setting.error, setting.errs)
    if key not in _KNOWN:
        for _ in range(18):
            _KNOWN[key] = middle = (low + high) / 2
            made = answers_of(setting._replace(people=1), _LARGE, generator(0, "noise"))
            low, high = (low, middle) if 1 - made.mean() > setting.error else (middle, high)
        _KNOWN[key] = (low + high) / 2
    return _KNOWN[key]


_KNOWN: dict[tuple[int, float, str], float] = {}


def labels_of(setting: Setting, right: Booleans) -> Integers:
    """Return the labels: 1 right, 0 wrong, -1 none; (prompt, pair)."""
    chosen = right[:, :1] if setting.rule == "one" else right
    first, second = np.array(list(combinations(range(setting.responses), 2))).T
    prompt, _, pair = np.nonzero(np.ones(chosen.shape))
    flat = chosen.reshape(-1)
    better, worse = np.where(flat, first[pair], second[pair]), np.where(flat, second[pair], first[pair])
    tier = tiers_of(Edges(prompt, better, worse), np.full(len(right), setting.responses))
    return np.where(tier[:, first] == tier[:, second], -1, (tier[:, first] < tier[:, second]).astype(np.int64))


def planted(setting: Setting) -> float:
    """Return the share of prompts without a wrong label."""
    label = labels_of(setting, answers_of(setting, _LARGE, generator(1, "planted")))
    has_label = (label >= 0).any(axis=1)
    return float((label[has_label] != 0).all(axis=1).mean())


def estimated(setting: Setting, seed: int) -> Estimate | None:
    """Return the estimate from a sample."""
    random = generator(seed, "sample")
    right = answers_of(setting, setting.prompts, random)
    label = labels_of(setting, right)
    pairs = list(combinations(range(setting.responses), 2))
    # The truth is a random order of the names, so that the estimator cannot know it.
    order = random.permuted(np.tile(np.arange(setting.responses), (setting.prompts, 1)), axis=1)
    is_turned = order[:, [pair[0] for pair in pairs]] > order[:, [pair[1] for pair in pairs]]
    place = np.zeros((setting.prompts, len(pairs)), np.int64)
    number = {pair: at for at, pair in enumerate(pairs)}
    for at, (first, second) in enumerate(pairs):
        ends = np.sort(order[:, [first, second]], axis=1)
        place[:, at] = [number[low, high] for low, high in ends.tolist()]
    votes = np.zeros((setting.prompts, len(pairs), 2), np.int64)
    codes = np.full((setting.prompts, len(pairs)), -1)
    rows = np.arange(setting.prompts)
    for at in range(len(pairs)):
        for_better = right[:, :, at].sum(axis=1)
        first_votes = np.where(is_turned[:, at], setting.people - for_better, for_better)
        votes[rows, place[:, at]] = np.stack([first_votes, setting.people - first_votes], axis=1)
        code = np.where(label[:, at] < 0, -1, (label[:, at] == 0) ^ is_turned[:, at])
        codes[rows, place[:, at]] = code
    among = np.full(codes.shape, 2 if setting.errs == "pairs" else setting.responses)
    prompts = AnsweredPrompts(setting.responses, rows, votes, codes, among, np.ones(setting.prompts, dtype=bool))
    blocks = draw_blocks([Label(f"p{at}", Cell("all")) for at in rows.tolist()], num_resamples=200, seed=seed)
    found = right_prompts(blocks, [prompts])
    return None if found is None else found.exact_match.micro


def main(
    replays: Annotated[int, typer.Option()] = 500,
    only: Annotated[str, typer.Option()] = "",
    first_seed: Annotated[int, typer.Option()] = 0,
) -> None:
    """Print a line for each setting."""
    print("| people err | prompts | responses | people | label | error | planted | mean | coverage | width |")
    print("|---|--:|--:|--:|---|--:|--:|--:|--:|--:|")
    for errs in ("insertion", "pairs", "utility"):
        if only and only != errs:
            continue
        for prompts, responses, people, rule in (
            (100, 3, 2, "both"), (100, 5, 2, "both"), (400, 5, 2, "both"),
            (100, 5, 2, "one"), (100, 4, 3, "one"),
        ):  # fmt: skip
            for error in (0.05, 0.1, 0.2):
                setting = Setting(prompts, responses, people, error, errs, rule)
                truth = planted(setting)
                drawn = [estimated(setting, seed) for seed in range(first_seed, first_seed + replays)]
                ends = [(each.low, each.value, each.high) for each in drawn if each is not None]
                low, value, high = np.array(ends, np.float64).T
                covered, width, mean = np.mean((low <= truth) & (truth <= high)), np.mean(high - low), np.mean(value)
                cells = (errs, prompts, responses, people, rule, *(f"{each:.1%}" for each in (error, truth, mean)))
                print(f"| {' | '.join(map(str, (*cells, f'{covered:.1%}', f'{width:.1%}')))} |", flush=True)


if __name__ == "__main__":
    typer.run(main)
