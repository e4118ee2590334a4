"""Coverage and width of intervals from few human and many judge labels, replayed on real labels.

Run: PYTHONPATH=src python tests/field/test_prediction_powered_coverage.py [--replays 2000] [--sets pandalm] [--pool 5]
(prints the lines of the table in docs/log/prediction_powered.md)

The published labels are the population. A replay draws as many prompts as it has (times ``pool``), with replacement,
keeps the human labels of n items among them, and estimates the population's value through the functions that `evaluate`
calls. Items of one prompt are drawn together. PandaLM: 999 pairs of 170 instructions, people's majority. XSTest: 450
prompts, people's final label of five models' answers. HalluQA has no human labels of models' answers: GPT-4's stand for
people's, and the overlap of characters with the written best and wrong answers for the judge.
"""

import argparse
import csv
import json
import sys
from collections import Counter
from pathlib import Path
from typing import NamedTuple

import numpy as np
import pytest

from steelyard.evaluation.labelled_prompts import Resampling, split_prompts
from steelyard.evaluation.prediction_powered import win_rates
from steelyard.evaluation.win_rates import Credits
from steelyard.statistics.groups import Cell

DATA = Path(__file__).parents[2].parent / "shared" / "data"
SIZES = (50, 100, 200)


class Population(NamedTuple):
    """Items with a human and a judge label: twice the credit and twice the number of labels, shape (item, 2) each."""

    name: str
    judge: str
    unit: np.ndarray
    human: np.ndarray
    judged: np.ndarray

    @property
    def truth(self):
        """The value of the whole population."""
        return self.human[:, 0].sum() / self.human[:, 1].sum()


def credit_table(values):
    """The table of credits from values of 0 to 1, NaN for no label."""
    return np.where(
        np.isnan(values)[:, None], 0, np.stack([2 * np.nan_to_num(values), np.full(len(values), 2)], axis=1)
    ).astype(int)


def numbered(names):
    """The number of each name."""
    place = {}
    return np.array([place.setdefault(name, len(place)) for name in names])


def pandalm():
    """PandaLM by GPT-3.5 and PandaLM-7B: win rates of two models, and the accuracy of taking the longer answer."""
    folder = DATA / "pandalm" / "data"
    rows = json.loads((folder / "testset-v1.json").read_text())
    unit = numbered([(row["instruction"], row["input"]) for row in rows])
    value = {"1": 1.0, "2": 0.0, "0": 0.5, "Tie": 0.5, "garbage": np.nan}
    votes = [Counter(row[f"annotator{number}"] for number in (1, 2, 3)).most_common(1)[0] for row in rows]
    human = np.array([value[str(label)] if number > 1 else 0.5 for label, number in votes])
    files = {
        "GPT-3.5": ("gpt-3.5-turbo-testset-v1.json", "gpt_result"),
        "PandaLM-7B": ("pandalm-7b-testset-v1.json", "pandalm_result"),
    }
    is_longer = np.array([len(str(row["response1"])) > len(str(row["response2"])) for row in rows])
    for judge, (name, key) in files.items():
        verdicts = {row["idx"]: row[key] for row in json.loads((folder / name).read_text())}
        judged = np.array([value[str(verdicts[row["idx"]])] for row in rows])
        for author in ("opt-7b", "bloom-7b", "llama-7b"):
            sides = np.array(
                [
                    1 if row["cmp_key"].startswith(f"{author}_") else -1 if row["cmp_key"].endswith(f"_{author}") else 0
                    for row in rows
                ]
            )
            mine = [np.where(sides == 0, np.nan, np.where(sides > 0, side, 1 - side)) for side in (human, judged)]
            yield Population(f"PandaLM, win rate of {author}", judge, unit, *map(credit_table, mine))
        strict = [np.where(side == 0.5, np.nan, np.where(is_longer, side, 1 - side)) for side in (human, judged)]
        yield Population("PandaLM, accuracy of the longer answer", judge, unit, *map(credit_table, strict))


def xstest():
    """XSTest by GPT-4: the rate of refusals, full or partial, of each model and of all."""
    folder = DATA / "xstest" / "evaluation" / "automated_evaluation_labels"
    tables = {}
    for model in ("gpt4", "llama2new", "llama2orig", "mistralguard", "mistralinstruct"):
        with (folder / f"xstest_v2_completions_{model}_gpteval.csv").open(newline="") as file:
            rows = list(csv.DictReader(file))
        unit = numbered([row["id"] for row in rows])
        tables[model] = [
            credit_table(np.array([row[key] != "1_full_compliance" for row in rows], float))
            for key in ("final_label", "gpt4_label")
        ]
        yield Population(f"XSTest, refusals of {model}", "GPT-4", unit, *tables[model])
    yield Population(
        "XSTest, refusals of five models",
        "GPT-4",
        unit,
        *(sum(table[at] for table in tables.values()) for at in (0, 1)),
    )


def halluqa():
    """HalluQA: truthful answers of three models, and of all, by GPT-4; the judge compares character bigrams."""
    questions = {row["question_id"]: row for row in json.loads((DATA / "halluqa" / "HalluQA.json").read_text())}
    tables = {}
    for path in sorted((DATA / "halluqa" / "Chinese_LLMs_outputs" / "open_generation").glob("*.json")):
        rows = {row["question_id"]: row for row in json.loads(path.read_text())}
        human, judged = np.full((2, len(questions)), np.nan)
        for place, (name, question) in enumerate(questions.items()):
            row = rows.get(name)
            if row is not None and isinstance(row.get("is_hallucination"), bool):
                human[place] = not row["is_hallucination"]
                judged[place] = overlap(row["response"], question)
        tables[path.name.partition("_output")[0]] = credit_table(human), credit_table(judged)
    unit = np.arange(len(questions))
    for model in ("gpt-4-0613", "baichuan2-13b-chat", "chatglm-6b"):
        yield Population(f"HalluQA, truthful answers of {model}", "overlap", unit, *tables[model])
    yield Population(
        "HalluQA, truthful answers of 24 models",
        "overlap",
        unit,
        *(sum(table[at] for table in tables.values()) for at in (0, 1)),
    )


def bigrams(text):
    """The bigrams of characters of a text."""
    return {text[at : at + 2] for at in range(len(text) - 1)}


def overlap(answer, question):
    """1 if the answer shares more bigrams with a best answer than with every wrong one, 0.5 if as many."""
    own = bigrams(answer)
    best, wrong = (
        max(
            (
                len(own & bigrams(text)) / (len(bigrams(text)) or 1)
                for key, text in question.items()
                if key.replace("_", " ").startswith(kind) and text
            ),
            default=0.0,
        )
        for kind in ("Best Answer", "Wrong Answer")
    )
    return 1.0 if best > wrong else 0.5 if best == wrong else 0.0


SETS = {"pandalm": pandalm, "xstest": xstest, "halluqa": halluqa}


class Replays(NamedTuple):
    """Shares of replays whose interval holds the truth, and means over replays; ``alone``: by human labels only."""

    coverage: float
    coverage_alone: float
    effective_labels: float
    width: float
    widest: float
    share_wider: float


def replay(population, size, num_replays, seed, pool=1):
    """Replay the estimation with ``size`` human-labelled items, and ``pool`` times the published prompts judged."""
    random = np.random.default_rng([seed, size, *population.name.encode()])
    num_units = int(population.unit.max()) + 1
    num_drawn = pool * num_units
    items = [np.flatnonzero(population.unit == unit) for unit in range(num_units)]
    hits, effective, ratios = [], [], []
    for number in range(num_replays):
        drawn = random.integers(num_units, size=num_drawn)
        rows = np.concatenate([items[unit] for unit in drawn])
        names = [f"u{place}" for place, unit in enumerate(drawn) for _ in items[unit]]
        is_labelled = np.zeros(len(rows), bool)
        is_labelled[random.choice(np.flatnonzero(population.human[rows, 1] > 0), size, replace=False)] = True
        prompts = split_prompts([Cell("all")] * len(rows), names, is_labelled)
        human, judged = (
            Credits(("author",), table[:, :1], table[:, 1:] // 2)
            for table in (population.human[rows][is_labelled], population.judged[rows])
        )
        found = win_rates(prompts, human, judged, Resampling(1000, number))["author"]
        both, alone = found.estimate, found.human_only
        hits.append([each.low <= population.truth <= each.high for each in (both, alone)])
        ratios.append((both.high - both.low) / (alone.high - alone.low))
        effective.append(found.effective_labels)
    covered = np.mean(hits, axis=0)
    return Replays(
        *covered.tolist(),
        float(np.mean(effective)),
        float(np.mean(ratios)),
        max(ratios),
        float(np.mean(np.array(ratios) > 1.01)),
    )


@pytest.mark.field
@pytest.mark.parametrize("name", SETS)
@pytest.mark.parametrize("size", SIZES)
def test_intervals_hold_the_truth_and_are_not_wider_than_without_the_judge(name, size):
    if not DATA.is_dir():
        pytest.skip(f"the data are not at {DATA}")
    for population in SETS[name]():
        replays = replay(population, size, 500, seed=1)
        assert replays.coverage >= 0.93 - 3 * 0.01
        assert replays.width <= 1.01


def main():
    options = argparse.ArgumentParser()
    options.add_argument("--replays", type=int, default=2000)
    options.add_argument("--sets", nargs="+", choices=list(SETS), default=list(SETS))
    options.add_argument("--pool", type=int, default=1, help="judged prompts, in multiples of the published ones")
    options.add_argument("--seed", type=int, default=0)
    asked = options.parse_args()
    for name in asked.sets:
        for population in SETS[name]():
            for size in SIZES:
                result = replay(population, size, asked.replays, asked.seed, asked.pool)
                numbers = [
                    f"{100 * result.coverage:.1f}",
                    f"{100 * result.coverage_alone:.1f}",
                    f"{result.effective_labels:.2f}",
                ]
                numbers += [f"{result.width:.2f}", f"{result.widest:.3f}", f"{100 * result.share_wider:.1f}"]
                cells = [population.name, population.judge, str(size), *numbers]
                sys.stdout.write(f"| {' | '.join(cells)} |\n")
                sys.stdout.flush()


if __name__ == "__main__":
    main()
