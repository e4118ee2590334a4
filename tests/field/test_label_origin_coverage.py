"""Coverage of `evaluate --human --judged` where the file of the judge holds people's labels, too.

Run: PYTHONPATH=src python tests/field/test_label_origin_coverage.py [--replications 500]
(prints the lines of a table in docs/log/prediction_powered.md)

People label some of 600 prompts, a judge all of them. Their files are joined by `merge` and ranked by `resolve
--aggregate majority`, and `evaluate` estimates how often the longer response is better. Three people agree on every
prompt, so that the majority of people and judge is people's label. Prompts are drawn anew in each replication.
"""

import argparse
import shutil
import sys
import tempfile
from pathlib import Path
from typing import NamedTuple

import numpy as np
import pytest

from steelyard.core.types import Case, Judgment, Message, Prompt, Response
from steelyard.io.cases import write_cases
from steelyard.stages.evaluate import Config, evaluate
from steelyard.stages.merge import merge
from steelyard.stages.resolve import Config as ResolveConfig
from steelyard.stages.resolve import resolve

NUM_PROMPTS, RIGHT = 600, 0.9
MAJORITY = ResolveConfig(aggregate="majority", quality=False)


class Setting(NamedTuple):
    """How often people, and the judge, prefer the longer response; ``num_labelled`` prompts have people's labels."""

    people: float
    judge: float
    num_labelled: int


SETTINGS = [Setting(*values, n) for n in (100, 60) for values in ((0.8, 0.85), (0.8, 0.9), (0.6, 0.7))]


def judged(index, kind, prefers_longer, num_judges=1):
    """A prompt with a longer and a shorter response, judged by some judges of one kind, who agree."""
    verdict = "left" if prefers_longer else "right"
    return Case(
        prompt=Prompt(id=f"p{index}", messages=(Message(role="user", content=f"question {index}"),)),
        responses=(Response(id="a", text=f"a long answer to {index}"), Response(id="b", text=f"short {index}")),
        judgments=tuple(
            Judgment(left="a", right="b", verdict=verdict, judge=f"{kind}{number}", kind=kind)
            for number in range(num_judges)
        ),
    )


def draw(setting, rng):
    """What people and the judge prefer: the judge agrees with people's preference for the longer in `RIGHT` of them."""
    people = rng.random(NUM_PROMPTS) < setting.people
    other = (setting.judge - RIGHT * setting.people) / (1 - setting.people)
    return people, rng.random(NUM_PROMPTS) < np.where(people, RIGHT, other)


def replicate(setting, rng, folder):
    """The estimate of one drawing of prompts, and whether the input was noted to hold people's labels."""
    people, judge = draw(setting, rng)
    labelled = [judged(index, "human", people[index], 3) for index in range(setting.num_labelled)]
    write_cases(folder / "people.jsonl", labelled)
    write_cases(folder / "judge.jsonl", [judged(index, "llm", own) for index, own in enumerate(judge)])
    resolve(folder / "people.jsonl", folder / "human", MAJORITY)
    merge([folder / "people.jsonl", folder / "judge.jsonl"], folder / "merged")
    resolve(folder / "merged" / "cases.jsonl", folder / "resolved", MAJORITY)
    paths = {"human": folder / "human" / "cases.jsonl", "judged": folder / "resolved" / "cases.jsonl"}
    run = evaluate([], folder / "powered", Config(num_resamples=1000), model="longer", **paths)
    noted = any(finding.check == "labels_of_people" for finding in run.findings)
    return run.summary.prediction_powered.accuracy, noted


def coverage(setting, num_replications):
    """In how many of 100 replications the interval holds people's value, and the mean of some numbers."""
    rng = np.random.default_rng([3, *(int(100 * value) for value in setting)])
    rows = []
    for _ in range(num_replications):
        folder = Path(tempfile.mkdtemp())
        powered, noted = replicate(setting, rng, folder)
        shutil.rmtree(folder)
        ends = [(own.low, own.high) for own in (powered.estimate, powered.human_only)]
        held = [low <= setting.people <= high for low, high in ends]
        rows.append(
            (*held, noted, powered.estimate.value, powered.effective_labels, *(high - low for low, high in ends))
        )
    return np.mean(rows, axis=0)


@pytest.mark.field
@pytest.mark.parametrize("setting", SETTINGS, ids=str)
def test_labels_of_people_in_the_file_of_a_judge_do_not_count_as_the_judges(setting):
    covered, _, noted, *_ = coverage(setting, 500)
    assert covered >= 0.93 - 2 * 0.01
    assert noted == 1


def main():
    options = argparse.ArgumentParser()
    options.add_argument("--replications", type=int, default=500)
    asked = options.parse_args()
    for setting in SETTINGS:
        *shares, value, worth, width, alone = coverage(setting, asked.replications)
        numbers = [*(f"{100 * own:.1f}" for own in shares), *(f"{own:.3f}" for own in (value, worth, width, alone))]
        sys.stdout.write(f"| {' | '.join([*map(str, setting), *numbers])} |\n")
        sys.stdout.flush()


if __name__ == "__main__":
    main()
