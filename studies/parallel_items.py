"""False alarms of tests of two models on few prompts in several languages, by simulation.

``units``: prompts are units in all their languages, as `compare` and `leaderboard` take them. ``cases``: each case is a
unit of its own. ``resamples``: twice the smaller share of resamples in which a model leads. ``correlation`` is that of
a model's outcomes on one prompt; both models are right on 60% of the cases.

    python studies/parallel_items.py --samples 2000 --seed 1
"""

import argparse

import numpy as np

from steelyard.statistics.aggregation import ACCURACY, mean_accuracy
from steelyard.statistics.bootstrap import Items, resample
from steelyard.statistics.groups import Cell, Label, Layout, layout_of
from steelyard.statistics.pair_counts import CORRECT, EXACT, NUM_COLUMNS
from steelyard.statistics.significance import NUM_RESAMPLES, HeadlineBootstrap, share_difference

PROMPTS, LANGUAGES, RIGHT, LEVEL = 6, 6, 0.6, 0.05
CORRELATIONS = (0.0, 0.3, 0.7, 1.0)


def layout(*, is_joint: bool) -> Layout:
    """Return the layout of all cases; joint ones of a prompt are one unit."""
    cases = [(prompt, language) for prompt in range(PROMPTS) for language in range(LANGUAGES)]
    names = (f"{prompt}" if is_joint else f"{prompt} {language}" for prompt, language in cases)
    return layout_of(
        [Label(name, Cell("", None, f"{language}")) for name, (_, language) in zip(names, cases, strict=True)]
    )


def outcomes(random: np.random.Generator, correlation: float) -> np.ndarray:
    """Return a table of one model's statistics; a case copies its prompt's outcome or has one of its own."""
    of_prompt = random.random((PROMPTS, 1)) < RIGHT
    copies = random.random((PROMPTS, LANGUAGES)) < correlation**0.5
    right = np.where(copies, of_prompt, random.random((PROMPTS, LANGUAGES)) < RIGHT)
    table = np.ones((PROMPTS * LANGUAGES, NUM_COLUMNS), np.int64)
    table[:, [CORRECT, EXACT]] = right.reshape(-1, 1)
    return table


def p_values(tables: list[np.ndarray], layouts: dict[str, Layout]) -> dict[str, float]:
    """Return the p-value of each test."""
    both = np.concatenate(tables, axis=1)
    found = {
        name: share_difference(Items(each, both, NUM_RESAMPLES), ACCURACY, seed=0).p for name, each in layouts.items()
    }
    formula = mean_accuracy(resample(Items(layouts["units"], tables[0], 0), seed=0)).formula
    drawn = HeadlineBootstrap(layouts["units"], formula, NUM_RESAMPLES, 0).draw(tables).resampled
    lead = drawn[:, 0] - drawn[:, 1]
    half = (lead == 0).mean() / 2
    return found | {"resamples": 2 * min((lead > 0).mean() + half, (lead < 0).mean() + half)}


def main() -> None:
    """Print the false alarms of each test with their Wilson intervals."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--samples", type=int, default=2000)
    parser.add_argument("--seed", type=int, default=1)
    arguments = parser.parse_args()
    layouts = {"units": layout(is_joint=True), "cases": layout(is_joint=False)}
    random = np.random.default_rng(arguments.seed)
    print("| correlation | units | cases | resamples |\n|---|---|---|---|")
    for correlation in CORRELATIONS:
        found = [p_values([outcomes(random, correlation) for _ in range(2)], layouts) for _ in range(arguments.samples)]
        cells = [wilson(np.array([each[test] < LEVEL for each in found])) for test in ("units", "cases", "resamples")]
        print(f"| {correlation} | {' | '.join(cells)} |", flush=True)


def wilson(alarms: np.ndarray) -> str:
    """Return a share in percent with its 95% interval (Wilson)."""
    share, number, z = float(alarms.mean()), len(alarms), 1.96
    middle = (share + z * z / (2 * number)) / (1 + z * z / number)
    half_width = z * np.sqrt(share * (1 - share) / number + z * z / (4 * number**2)) / (1 + z * z / number)
    return f"{100 * share:.1f}% [{100 * (middle - half_width):.1f}, {100 * (middle + half_width):.1f}]"


if __name__ == "__main__":
    main()
