"""Panels of judges whose reliability is known: the true order of every pair, and how often each judge reports it."""

import numpy as np

from steelyard.core.types import Judgment
from steelyard.ranking.annotation_features import TraitCollector
from steelyard.ranking.judge_reliability import PanelCollector
from steelyard.ranking.judgment_table import judgment_table
from steelyard.ranking.panel_counts import panel_counts
from strategies import case

PAIRS = (("a", "b"), ("a", "c"), ("b", "c"))


def panel_cases(num_prompts, accuracies, *, seed, judges_a_prompt=3, tie=0.1, late=None, batches=0):
    """Return cases of three answers, a > b > c, each pair judged by some judges of the panel.

    A judge reports a tie with probability ``tie``, else the true order with its accuracy; ``late`` maps a judge to its
    accuracy in the second half of the prompts. Judges err together on hard prompts (a third of them, at even odds).
    """
    rng = np.random.default_rng(seed)
    cases = []
    for number in range(num_prompts):
        is_hard = rng.random() < 1 / 3
        judgments = []
        for judge in rng.choice(len(accuracies), size=judges_a_prompt, replace=False).tolist():
            accuracy = accuracies[judge]
            if late and judge in late and number >= num_prompts / 2:
                accuracy = late[judge]
            for left, right in PAIRS:
                right_order = rng.random() < (0.5 if is_hard else accuracy)
                verdict = "tie" if rng.random() < tie else "left" if right_order else "right"
                batch = f"batch {1 + number * batches // num_prompts}" if batches else None
                judgments.append(
                    Judgment(left=left, right=right, verdict=verdict, judge=f"j{judge}", kind="human", batch=batch)
                )
        cases.append(case(id=f"p{number}", responses="abc", judgments=judgments))
    return cases


def reliability_of(cases, *, seed=0, batch=1000):
    """Return the reliability of the judges of some cases, which arrive in batches."""
    collector = PanelCollector()
    for start in range(0, len(cases), batch):
        traits = TraitCollector()
        table = judgment_table(cases[start : start + batch], visit=traits.add)
        collector.add(panel_counts(table, traits.traits(table)), np.arange(start, start + len(table.cases)))
    return collector.reliability(seed=seed)
