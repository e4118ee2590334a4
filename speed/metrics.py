"""Accuracy, exact match and bootstrap intervals of 30,000 prompts with five responses: a plain loop against ours.

Run: .venv/bin/python speed/metrics.py [--peer-python PATH --peer-clone FOLDER]   (writes speed/results/metrics.json)
``--peer-clone`` is a clone of AlignRM/CheemsRM and ``--peer-python`` the Python of an environment that can import it
(speed/peers/cheemsrm_metric.py): without both, its published measures are not run. One thread, no other load.
"""

import argparse
import json
import os
import platform
import subprocess
import sys
import tempfile
import time
from pathlib import Path
from typing import NamedTuple

import numpy as np
from peers.published_metric import accuracy_and_exact_match

from steelyard.statistics.aggregation import ACCURACY, means
from steelyard.statistics.bootstrap import Items, resample
from steelyard.statistics.groups import Cell, Label, layout_of
from steelyard.statistics.pair_counts import prompt_statistics, statistics_table
from steelyard.statistics.significance import share_difference

RESULTS = Path(__file__).parent / "results" / "metrics.json"
NUM_RESAMPLES, NUM_CATEGORIES, NUM_RESPONSES = 1000, 8, 5


class Made(NamedTuple):
    """Flat arrays of pairs, the prompts' labels, and the scores, shape (prompt, response), best response first."""

    prompt: np.ndarray
    better: np.ndarray
    worse: np.ndarray
    labels: list
    scores: np.ndarray


def made_up(num_prompts, seed=0):
    """Full rankings and scores that agree with them more often than not; flat arrays of all ten pairs a prompt."""
    random = np.random.default_rng(seed)
    scores = random.normal(size=(num_prompts, NUM_RESPONSES)) - np.arange(NUM_RESPONSES) * 0.5
    better, worse = np.triu_indices(NUM_RESPONSES, 1)
    prompt = np.repeat(np.arange(num_prompts), len(better))
    category = random.integers(0, NUM_CATEGORIES, size=num_prompts)
    labels = [Label(f"p{index}", Cell(f"c{own}")) for index, own in enumerate(category.tolist())]
    return Made(prompt, scores[:, better].ravel(), scores[:, worse].ravel(), labels, scores)


def plain_loop(prompt, better, worse, labels):
    """Accuracy and exact match by category in plain Python, as a script would do it."""
    pairs, correct = [0] * len(labels), [0] * len(labels)
    for index, upper, lower in zip(prompt, better, worse, strict=True):
        pairs[index] += 1
        correct[index] += upper > lower
    sums = {}
    for label, total, right in zip(labels, pairs, correct, strict=True):
        own = sums.setdefault(label.cell.category, [0, 0, 0, 0])
        for column, value in enumerate((total, right, 1, total == right)):
            own[column] += value
    accuracy = sum(own[1] / own[0] for own in sums.values()) / len(sums)
    return accuracy, sum(own[3] / own[2] for own in sums.values()) / len(sums)


def gather_bootstrap(table, layout):
    """The same bootstrap by drawing prompts: the interval of accuracy over categories."""
    random = np.random.default_rng(0)
    drawn = np.empty((NUM_RESAMPLES, len(layout.strata)))
    for place, stratum in enumerate(layout.strata):
        own = table[stratum.rows]
        for row in range(NUM_RESAMPLES):
            sums = own[random.integers(0, len(own), size=len(own)), :2].sum(axis=0)
            drawn[row, place] = sums[1] / sums[0]
    return np.percentile(drawn.mean(axis=1), [2.5, 97.5])


def timed(function, *arguments, repeats=5):
    """The last result, and the least processor seconds of some runs."""
    best = float("inf")
    for _ in range(repeats):
        start = time.process_time()
        result = function(*arguments)
        best = min(best, time.process_time() - start)
    return result, best


def measures_of_scores(scores):
    """Ours from a matrix of scores, best response first: its pairs, their statistics, accuracy and exact match."""
    better, worse = np.triu_indices(NUM_RESPONSES, 1)
    prompt = np.repeat(np.arange(len(scores)), len(better))
    statistics = prompt_statistics(prompt, scores[:, better].ravel(), scores[:, worse].ravel(), len(scores))
    table = statistics_table(statistics, np.ones(len(scores), dtype=bool))
    pairs, correct, counted, exact = table.sum(axis=0).tolist()
    return correct / pairs, exact / counted


def official(asked, num_prompts=30_000):
    """The measures of CheemsRM's published code and ours, of the same scores and ranks."""
    if not (asked.peer_python and asked.peer_clone):
        return "not run: needs --peer-python and --peer-clone"
    scores = made_up(num_prompts).scores
    places = list(range(NUM_RESPONSES))
    numbers = {
        "rewards": scores.ravel().tolist(),
        "prompts": np.repeat(np.arange(num_prompts), NUM_RESPONSES).tolist(),
        "places": places * num_prompts,
        "ranks": [place + 1 for place in places] * num_prompts,
    }
    with tempfile.TemporaryDirectory() as folder:
        file = Path(folder) / "numbers.json"
        file.write_text(json.dumps(numbers), encoding="utf-8")
        script = Path(__file__).parent / "peers" / "cheemsrm_metric.py"
        command = [asked.peer_python, str(script), asked.peer_clone, str(file)]
        peer = json.loads(subprocess.run(command, check=True, capture_output=True, text=True).stdout.splitlines()[-1])
    found, seconds = timed(measures_of_scores, scores)
    _, statistics_seconds = timed(prompt_statistics, *made_up(num_prompts)[:3], num_prompts)
    difference = max(abs(found[0] - peer["accuracy"]), abs(found[1] - peer["exact_match"]))
    assert difference < 1e-6, "the published code measures something else"
    git = ["git", "-C", asked.peer_clone, "rev-parse", "HEAD"]
    return {
        "commit": subprocess.run(git, check=True, capture_output=True, text=True).stdout.strip(),
        "torch": peer["torch"],
        "num_prompts": num_prompts,
        "official_seconds": peer["seconds"],
        "seconds_from_scores_to_measures": seconds,
        "statistics_seconds": statistics_seconds,
        "official_over_ours_from_scores": peer["seconds"] / seconds,
        "official_over_our_statistics": peer["seconds"] / statistics_seconds,
        "largest_difference_of_values": difference,
    }


def measure(num_prompts):
    made = made_up(num_prompts)
    prompt, better, worse, labels = made[:4]
    layout, layout_seconds = timed(layout_of, labels, repeats=3)
    included = np.ones(num_prompts, dtype=bool)
    statistics, statistics_seconds = timed(prompt_statistics, prompt, better, worse, num_prompts)
    table = statistics_table(statistics, included)
    items = Items(layout, table, NUM_RESAMPLES)
    totals, bootstrap_seconds = timed(lambda: resample(items, seed=0))
    found, headline_seconds = timed(means, totals)
    both = Items(layout, np.concatenate([table, table[::-1]], axis=1), NUM_RESAMPLES)
    _, paired_seconds = timed(lambda: share_difference(both, ACCURACY, seed=0))
    row = {
        "num_prompts": num_prompts,
        "layout_seconds": layout_seconds,
        "statistics_seconds": statistics_seconds,
        "prompts_a_second": round(num_prompts / statistics_seconds),
        "bootstrap_seconds": bootstrap_seconds,
        "headline_seconds": headline_seconds,
        "all_seconds": layout_seconds + statistics_seconds + bootstrap_seconds + headline_seconds,
        "paired_difference_seconds": paired_seconds,
        "interval": [found["accuracy"]["low"], found["accuracy"]["high"]],
    }
    if num_prompts <= 30_000:
        plain, row["plain_loop_seconds"] = timed(
            plain_loop, prompt.tolist(), better.tolist(), worse.tolist(), labels, repeats=3
        )
        assert np.allclose(plain, [found["accuracy"]["value"], found["exact_match"]["value"]], rtol=0, atol=1e-12)
        interval, row["gather_bootstrap_seconds"] = timed(gather_bootstrap, table, layout, repeats=1)
        row["gather_interval"] = interval.tolist()
        ranks = [list(range(1, NUM_RESPONSES + 1))] * num_prompts
        rule, row["published_rule_seconds"] = timed(accuracy_and_exact_match, ranks, made.scores.tolist(), repeats=3)
        pairs, correct, counted, exact = table.sum(axis=0).tolist()
        assert np.allclose(rule, [correct / pairs, exact / counted], rtol=0, atol=1e-9)
        row["published_rule_over_statistics"] = row["published_rule_seconds"] / statistics_seconds
        row["plain_loop_over_statistics"] = row["plain_loop_seconds"] / statistics_seconds
        row["gather_over_multinomial"] = row["gather_bootstrap_seconds"] / bootstrap_seconds
    return row


def asked_of(arguments):
    options = argparse.ArgumentParser()
    options.add_argument("--peer-python", help="the Python of an environment that can import CheemsRM")
    options.add_argument("--peer-clone", help="a clone of AlignRM/CheemsRM")
    return options.parse_args(arguments)


def main():
    asked = asked_of(sys.argv[1:])
    rows = [measure(num_prompts) for num_prompts in (2_500, 30_000, 1_000_000)]
    goal = next(row for row in rows if row["num_prompts"] == 30_000)
    assert goal["all_seconds"] < 2, "30,000 x 5 with 1,000 resamples in under 2 s"
    report = {
        "command": "python speed/metrics.py" + (" --peer-python PATH --peer-clone FOLDER" if asked.peer_clone else ""),
        "machine": f"{os.cpu_count()} cores ({platform.machine()}), Python {platform.python_version()}",
        "numpy": np.__version__,
        "num_responses": NUM_RESPONSES,
        "num_resamples": NUM_RESAMPLES,
        "num_categories": NUM_CATEGORIES,
        "seconds": "processor seconds, the least of several runs",
        "load_average": round(os.getloadavg()[0], 2),
        "rows": rows,
        "official_measures_of_cheemsrm": official(asked),
    }
    RESULTS.parent.mkdir(exist_ok=True)
    RESULTS.write_text(json.dumps(report, indent=2) + "\n", encoding="utf-8")
    print(json.dumps(report, indent=2))


if __name__ == "__main__":
    main()
