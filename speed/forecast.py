"""Error and coverage of forecasts on recorded runs of a real model, from pilots drawn at random and in order.

``python speed/forecast.py``: for each recorded run and size of the pilot, the error of the expected tokens and money of
the rest (median and 95th percentile of its size, over random pilots), and the share of pilots whose 95 % range has what
it came to; then the first replies in the order sent.
"""

import argparse
import random
import sys
from pathlib import Path

sys.path.insert(0, str(Path(__file__).parents[1] / "tests" / "support"))
import numpy as np

from recorded_runs import RecordedRun


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--draws", type=int, default=500)
    parser.add_argument("--seed", type=int, default=0)
    options = parser.parse_args()
    rng = random.Random(options.seed)
    for name in ("sampled", "judged"):
        run = RecordedRun(name)
        print(f"{name}, {len(run.served)} requests; nothing known: {shown(run, ())}")
        for number in (20, 50):
            print(f"  the first {number} known: {shown(run, list(run.served)[:number])}")
            drawn = [compared(run, rng.sample(list(run.served), number)) for _ in range(options.draws)]
            errors, covered = (np.array(column) for column in zip(*drawn, strict=True))
            for place, what in enumerate(("prompt tokens", "reply tokens", "money")):
                size = np.abs(errors[:, place])
                print(
                    f"  {number} at random, {what}: error {np.median(size):.1%}, 95 % of pilots under "
                    f"{np.quantile(size, 0.95):.1%}, within 10 % {np.mean(size <= 0.1):.1%}; "
                    f"range covers {covered[:, place].mean():.1%}"
                )


def compared(run, known):
    """Return the relative errors of the expected numbers, and whether the ranges have what it came to."""
    forecast, (_, *came_to) = run.forecast(known), run.rest(set(known))
    ranges = (forecast.prompt_tokens, forecast.reply_tokens, forecast.cost)
    pairs = list(zip(ranges, came_to, strict=True))
    errors = [each.expected / number - 1 for each, number in pairs]
    return errors, [each.low <= number <= each.high for each, number in pairs]


def shown(run, known):
    """Return forecasts and what it came to."""
    forecast, (_, *came_to) = run.forecast(known), run.rest(set(known))
    parts = []
    for each, number, what in zip(
        (forecast.prompt_tokens, forecast.reply_tokens, forecast.cost),
        came_to,
        ("prompt", "reply", "money"),
        strict=True,
    ):
        expected = "" if each.expected is None else f"{each.expected:.5g} ({each.expected / number - 1:+.1%}) "
        parts.append(f"{what} {expected}[{each.low:.5g}, {each.high:.5g}], came to {number:.5g}")
    return "; ".join(parts)


if __name__ == "__main__":
    main()
