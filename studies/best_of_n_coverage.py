"""Coverage of best-of-N curves from gold values of few prompts and a proxy on all, and the level of their tests.

Run: python studies/best_of_n_coverage.py [--samples 400] [--resamples 400] [--losses]
(prints the tables in docs/log/evaluation.md)

400 prompts of eight responses are drawn anew for each sample, and 30 or 100 of them have gold values. The truth is the
curve of 200,000 prompts. ``rise``: scores with an error; ``fall``: the gold value falls with the square of high scores;
``null``: scores without a relation to gold, where every rise or fall is a false alarm; ``ratings``: the gold values of
``rise`` as whole numbers from 1 to 5. The proxy is 5 times the gold value plus an error, ``good`` or ``poor``, that
grows with the score; ``within`` adds a constant to each prompt, so that it compares the responses to one prompt only.

With ``losses``, all prompts have gold values, and the losses of every N from the peak of the sample are covered or not.
"""

from typing import Annotated, NamedTuple

import numpy as np
import typer

from steelyard.core.numerics import generator
from steelyard.evaluation.best_of_n import budgets_from_one, curve_table, draw_curves, estimate_curve
from steelyard.evaluation.best_of_n_ppi import estimate_ppi_curve, ppi_tables
from steelyard.evaluation.candidates import CandidateColumns
from steelyard.statistics.bootstrap import draw_blocks
from steelyard.statistics.groups import Cell, Label
from steelyard.statistics.intervals import UNBOUNDED, Scale

NUM_PROMPTS, NUM_RESPONSES, NUM_OF_TRUTH = 400, 8, 200_000
SHOWN = (1, 2, 4, 8)
ERRORS = {"good": 0.5, "poor": 2.0, "within": 0.5}
BUDGETS = budgets_from_one(NUM_RESPONSES)


class Values(NamedTuple):
    """Scores, gold values and values of the proxy; shape (prompt, response)."""

    score: np.ndarray
    gold: np.ndarray
    proxy: np.ndarray


def draw(random: np.random.Generator, num_prompts: int, relation: str, quality: str) -> Values:
    """Draw the values of prompts."""
    shape = num_prompts, NUM_RESPONSES
    level = random.normal(size=(num_prompts, 1))
    gain = random.normal(size=shape)
    score = 0.6 * gain + 0.8 * random.normal(size=shape)
    gold = level + gain
    if relation == "fall":
        gold = level + score - 0.9 * score**2 * (score > 0) + 0.8 * random.normal(size=shape)
    if relation == "null":
        score = random.normal(size=shape)
    error = ERRORS[quality] * random.normal(size=shape) + 0.7 * random.normal(size=(num_prompts, 1))
    proxy = 5 * (gold + error) + 3 * score
    if quality == "within":
        proxy = proxy + 60 * random.normal(size=(num_prompts, 1))
    if relation == "ratings":
        gold = np.clip(np.rint(3 + gold), 1, 5)
    return Values(score, gold, proxy)


def cover_losses(samples: int, resamples: int) -> None:
    """Print how often the interval of a loss contains it, by N: of the samples whose peak is at another N."""
    for relation in ("fall", "rise", "null"):
        of_truth = draw(generator(99, "truth"), NUM_OF_TRUTH, relation, "good")
        owner = np.repeat(np.arange(NUM_OF_TRUTH), NUM_RESPONSES)
        arrays = of_truth.score.ravel(), of_truth.gold.ravel()
        truth = curve_table(owner, *arrays, NUM_OF_TRUTH, budgets=BUDGETS).chosen.mean(axis=0)
        for number in (60, 200):
            labels = tuple(Label(f"p{place}", Cell("all")) for place in range(number))
            covered, total = np.zeros((2, len(BUDGETS)))
            for sample in range(samples):
                values = draw(generator(sample, "sample", str(number)), number, relation, "good")
                arrays = np.repeat(np.arange(number), NUM_RESPONSES), values.score.ravel(), values.gold.ravel()
                table = curve_table(*arrays, number, budgets=BUDGETS)
                blocks = draw_blocks(labels, num_resamples=resamples, seed=sample)
                curve = estimate_curve(draw_curves(blocks, table), table)
                top = BUDGETS.index(curve.peak.n)
                for place, point in enumerate(curve.points):
                    if point.loss is not None and point.loss.low is not None and point.loss.high is not None:
                        covered[place] += point.loss.low <= truth[top] - truth[place] <= point.loss.high
                        total[place] += 1
            shares = (f"{100 * a / b:.1f}" if b > samples / 5 else "-" for a, b in zip(covered, total, strict=True))
            print("|", " | ".join((relation, str(number), *shares)), "|", flush=True)


def main(
    samples: Annotated[int, typer.Option(help="The number of samples of a line.")] = 400,
    resamples: Annotated[int, typer.Option(help="The number of bootstrap resamples.")] = 400,
    *,
    losses: Annotated[bool, typer.Option(help="Whether to cover the losses from the peak.")] = False,
) -> None:
    """Print a line for each relation, proxy and number of prompts with gold values."""
    if losses:
        cover_losses(samples, resamples)
        return
    labels = tuple(Label(f"p{place}", Cell("all")) for place in range(NUM_PROMPTS))
    prompt = np.repeat(np.arange(NUM_PROMPTS), NUM_RESPONSES)
    nothing = np.full(prompt.size, np.nan)
    for relation in ("rise", "fall", "null", "ratings"):
        scale = Scale(1.0, 5.0) if relation == "ratings" else UNBOUNDED
        for quality in ERRORS:
            all_of_truth = draw(generator(99, "truth"), NUM_OF_TRUTH, relation, quality)
            owner = np.repeat(np.arange(NUM_OF_TRUTH), NUM_RESPONSES)
            arrays = all_of_truth.score.ravel(), all_of_truth.gold.ravel()
            truth = curve_table(owner, *arrays, NUM_OF_TRUTH, budgets=BUDGETS).chosen.mean(axis=0)
            for num_labelled in (30, 100):
                covered, alone = np.zeros((2, NUM_RESPONSES))
                widths, effective, called = [], [], np.zeros(2)
                for sample in range(samples):
                    values = draw(generator(sample, "sample", str(num_labelled)), NUM_PROMPTS, relation, quality)
                    gold = values.gold.copy()
                    gold[num_labelled:] = np.nan
                    arrays = (values.score.ravel(), gold.ravel(), nothing, values.proxy.ravel(), nothing)
                    tables = ppi_tables(CandidateColumns(labels, prompt, *arrays), BUDGETS)
                    curve = estimate_ppi_curve(tables, scale, num_resamples=resamples, seed=sample)
                    ends, ends_alone = (
                        np.array([[each.low, each.high] for each in part])
                        for part in ([p.chosen for p in curve.points], [p.gold_only for p in curve.points])
                    )
                    covered += (ends[:, 0] <= truth) & (truth <= ends[:, 1])
                    alone += (ends_alone[:, 0] <= truth) & (truth <= ends_alone[:, 1])
                    widths.append(np.mean(np.ptp(ends, axis=1) / np.ptp(ends_alone, axis=1)))
                    effective.append(curve.proxy.effective_labels)
                    called += curve.peak.rises, curve.peak.falls
                shown = [place for place, budget in enumerate(BUDGETS) if budget in SHOWN]
                shares = (", ".join(f"{100 * part[at] / samples:.1f}" for at in shown) for part in (covered, alone))
                numbers = (f"{np.mean(effective):.2f}", f"{np.mean(widths):.2f}")
                tests = (f"{100 * number / samples:.1f}" for number in called)
                print(
                    "|", " | ".join((relation, quality, str(num_labelled), *shares, *numbers, *tests)), "|", flush=True
                )


if __name__ == "__main__":
    typer.run(main)
