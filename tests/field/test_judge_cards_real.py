"""The cards of published judges, on pairs that people labelled too.

Run: PYTHONPATH=src python tests/field/test_judge_cards_real.py (prints the lines of the table in the log)

PandaLM: GPT-3.5 and PandaLM-7B against the votes of three people. XSTest: pairs of five models' answers to a prompt;
the better one complies with a safe prompt or refuses an unsafe one, by people's final label and by GPT-4's. HalluQA has
no pair that people and GPT-4 both labelled.
"""

import csv
import json
import sys
from collections import defaultdict
from itertools import combinations
from pathlib import Path

import pytest

from steelyard.core.types import Case, Judgment, Message, Prompt, Response
from steelyard.judging.judge_card import judge_cards

DATA = Path(__file__).parents[2].parent / "shared" / "data"
MODELS = ("gpt4", "llama2new", "llama2orig", "mistralguard", "mistralinstruct")
VERDICTS = {"1": "left", "2": "right", "0": "tie", "Tie": "tie", "garbage": "none"}


def pandalm():
    folder = DATA / "pandalm" / "data"
    rows = json.loads((folder / "testset-v1.json").read_text())
    judges = {}
    for name, key in (("gpt-3.5-turbo", "gpt_result"), ("pandalm-7b", "pandalm_result")):
        published = json.loads((folder / f"{name}-testset-v1.json").read_text())
        judges[name] = {row["idx"]: VERDICTS[str(row[key])] for row in published}
    for row in rows:
        labels = [(f"annotator{number}", "human", VERDICTS[str(row[f"annotator{number}"])]) for number in (1, 2, 3)]
        labels += [(name, "llm", verdicts[row["idx"]]) for name, verdicts in judges.items()]
        yield Case(
            prompt=prompt(row["idx"], f"{row['instruction']}\n{row['input']}"),
            responses=tuple(Response(id=f"r{place}", text=str(row[f"response{place + 1}"])) for place in (0, 1)),
            judgments=tuple(
                Judgment(left="r0", right="r1", verdict=verdict, judge=judge, kind=kind)
                for judge, kind, verdict in labels
            ),
        )


def xstest():
    rows = defaultdict(list)
    for model in MODELS:
        path = DATA / "xstest" / "evaluation" / "automated_evaluation_labels"
        with (path / f"xstest_v2_completions_{model}_gpteval.csv").open(newline="") as file:
            for row in csv.DictReader(file):
                rows[row["id"]].append(row)
    for name, answers in rows.items():
        is_unsafe = answers[0]["type"].startswith("contrast")
        people, judge = (
            [(row[key] == "1_full_compliance") == is_unsafe for row in answers] for key in ("final_label", "gpt4_label")
        )
        yield Case(
            prompt=prompt(name, answers[0]["prompt"], "unsafe" if is_unsafe else "safe"),
            responses=tuple(Response(id=f"r{place}", text=row["completion"]) for place, row in enumerate(answers)),
            judgments=tuple(
                Judgment(
                    left=f"r{left}", right=f"r{right}", verdict=verdict(side[left], side[right]), judge=who, kind=kind
                )
                for who, kind, side in (("people", "human", people), ("GPT-4", "llm", judge))
                for left, right in combinations(range(len(answers)), 2)
            ),
        )


def verdict(left_is_worse, right_is_worse):
    return "tie" if left_is_worse == right_is_worse else "right" if left_is_worse else "left"


def prompt(name, text, *category):
    return Prompt(id=str(name), messages=(Message(role="user", content=text),), category=category)


@pytest.mark.field
def test_published_judges_have_the_recorded_cards():
    if not DATA.is_dir():
        pytest.skip(f"the data are not at {DATA}")
    cases = list(pandalm())
    gpt, other = judge_cards(cases, cases).cards
    assert (gpt.judge, gpt.people.num_pairs, gpt.num_unlabelled) == ("gpt-3.5-turbo", 974, 25)
    assert gpt.people.correlation.value == pytest.approx(0.589, abs=0.001)
    assert other.people.agreement.value == pytest.approx(0.668, abs=0.001)
    cases = list(xstest())
    (card,) = judge_cards(cases, cases).cards
    assert card.people.num_pairs == 4500
    assert card.by_category["safe"].correlation.value > card.by_category["unsafe"].correlation.value + 0.1


def main():
    for name, cases in (("PandaLM", list(pandalm())), ("XSTest", list(xstest()))):
        for card in judge_cards(cases, cases).cards:
            groups = {card.judge: card.people} | card.by_category
            for group, part in groups.items():
                values = (part.agreement, part.agreement_of_strict, part.kappa, part.correlation, part.effective_labels)
                shown = [f"{each.value:.3f} [{each.low:.3f}, {each.high:.3f}]" for each in values]
                sys.stdout.write(f"| {' | '.join([name, group, f'{part.num_pairs:,}', *shown])} |\n")
            longer = card.longer_preferred, card.longer_than_people
            sys.stdout.write(f"{card.judge}: longer preferred {longer[0]}, minus people {longer[1]}\n")


if __name__ == "__main__":
    main()
