"""Judges of real data: three people and GPT-3.5 on PandaLM's test set, three raters a segment on WMT 2023."""

import json
import tarfile
from collections import defaultdict
from itertools import combinations
from pathlib import Path

import msgspec
import numpy as np
import pytest
from rater_models import EVERYONE, compare_on_held_out
from sklearn.metrics import cohen_kappa_score

from steelyard.core.types import Case, Judgment, Message, Prompt, Response
from steelyard.io.cases import read_cases, write_cases
from steelyard.ranking.dawid_skene import Pairs, Votes
from steelyard.stages.resolve import Config, resolve

DATA = Path(__file__).parents[2].parent / "shared" / "data"
PANDALM = DATA / "pandalm" / "data"
WMT = DATA / "wmt_mqm" / "generalMT2023"
pytestmark = [
    pytest.mark.field,
    pytest.mark.skipif(not (PANDALM.exists() and WMT.exists()), reason="the real data are not beside the project"),
]
PEOPLE = ("annotator1", "annotator2", "annotator3")
VERDICTS = {0: "tie", 1: "left", 2: "right", "Tie": "tie", "1": "left", "2": "right", "garbage": "none"}


def pandalm_rows():
    rows = json.loads((PANDALM / "testset-v1.json").read_text(encoding="utf-8"))
    machine = json.loads((PANDALM / "gpt-3.5-turbo-testset-v1.json").read_text(encoding="utf-8"))
    said = {row["idx"]: row["gpt_result"] for row in machine}
    return [row | {"gpt": VERDICTS[said[row["idx"]]]} for row in rows]


def pandalm_cases():
    """A prompt is an instruction with its input; an answer is a model's text (once in a while a model has two)."""
    groups = defaultdict(list)
    for row in pandalm_rows():
        groups[row["instruction"], row["input"]].append(row)
    for number, ((instruction, given), rows) in enumerate(groups.items()):
        responses, judgments = {}, []
        for row in rows:
            names = row["cmp_key"].split("_", 1)
            sides = []
            for name, text in zip(names, (str(row["response1"]), str(row["response2"])), strict=True):
                own = f"{name}#{sum(key[0] == name and key[1] != text for key in responses)}"
                sides.append(responses.setdefault((name, text), Response(id=own, text=text, author=name)).id)
            shown = tuple(sides)
            people = [(name, VERDICTS[row[name]], "human") for name in PEOPLE]
            for name, verdict, kind in (*people, ("gpt-3.5", row["gpt"], "llm")):
                judgments.append(
                    Judgment(left=shown[0], right=shown[1], verdict=verdict, judge=name, kind=kind, shown=shown)
                )
        text = f"{instruction}\n{given}".strip()
        yield Case(
            prompt=Prompt(id=f"pandalm-{number}", messages=(Message(role="user", content=text),), language="en"),
            responses=tuple(responses.values()),
            judgments=tuple(judgments),
        )


def summary_of(cases, out, config=None):
    return msgspec.to_builtins(resolve(cases, out, config or Config(), workers=1).summary)


@pytest.fixture(scope="module")
def pandalm(tmp_path_factory):
    folder = tmp_path_factory.mktemp("pandalm")
    write_cases(folder / "cases.jsonl", pandalm_cases())
    return folder / "cases.jsonl", summary_of(folder / "cases.jsonl", folder / "out")


def test_kappa_of_the_people_is_that_of_the_published_rows(pandalm):
    rows = pandalm_rows()
    found = {tuple(one["judges"]): one for one in pandalm[1]["agreement"]["judges"]}
    for one, other in combinations(PEOPLE, 2):
        labels = [[row[name] for row in rows] for name in (one, other)]
        record = found[one, other]
        # Five rows compare the same two answers again, so a person may have said two things of one pair.
        assert record["agreement"]["n"] == pytest.approx(len(rows), abs=8)
        # Which answer stands first within a prompt differs from the published rows, so kappa moves a little.
        assert record["kappa"]["value"] == pytest.approx(cohen_kappa_score(*labels), abs=0.01)
        assert record["agreement"]["value"] == pytest.approx(np.mean(np.equal(*labels)), abs=0.005)
        assert record["kappa"]["low"] < record["kappa"]["value"] < record["kappa"]["high"]


def test_bias_of_people_and_of_the_machine_is_that_of_the_rows(pandalm):
    by_kind = pandalm[1]["judges"]["by_kind"]
    rows = pandalm_rows()
    machine = [row["gpt"] == "left" for row in rows if row["gpt"] in ("left", "right")]
    people = [row[name] == 1 for row in rows for name in PEOPLE if row[name]]
    assert by_kind["llm"]["position"]["earlier"]["value"] == pytest.approx(np.mean(machine))
    assert by_kind["human"]["position"]["earlier"]["value"] == pytest.approx(np.mean(people))
    for record in by_kind.values():
        assert record["length"]["longer"]["low"] > 0.5  # the longer answer is preferred here by all
        assert record["ranking"]["agreement"]["value"] == 1.0  # as it must be without a vote


def test_people_agree_with_each_other_more_than_with_the_machine(pandalm):
    agreement = pandalm[1]["agreement"]
    assert agreement["alpha"]["by_kind"]["human"]["low"] > agreement["alpha"]["all"]["high"]
    (both,) = agreement["kinds"]
    rows = [row for row in pandalm_rows() if row["gpt"] != "none"]
    same = []
    for row in rows:
        said = [VERDICTS[row[name]] for name in PEOPLE]
        most = next((verdict for verdict in ("left", "right") if said.count(verdict) > 1), "tie")
        if "tie" not in (most, row["gpt"]):
            same.append(most == row["gpt"])
    assert both["agreement_of_strict"]["value"] == pytest.approx(np.mean(same), abs=0.005)


def votes_of(cases, kind="human"):
    rows, judges = [], {}
    for prompt, one in enumerate(cases):
        place = {response.id: index for index, response in enumerate(one.responses)}
        for own in one.judgments:
            if own.kind == kind and own.verdict != "none":
                left, right = place[own.left], place[own.right]
                label = {"left": 0, "right": 1, "tie": 2}[own.verdict]
                turned = label if left < right else {0: 1, 1: 0, 2: 2}[label]
                rater = judges.setdefault(own.judge, len(judges))
                rows.append((prompt, min(left, right), max(left, right), rater, turned))
    prompt, first, second, rater, label = (np.array(column) for column in zip(*rows, strict=True))
    return Votes(Pairs(prompt, first, second), rater, label), list(judges)


def of_everyone(found):
    return {one.model: one for one in found if one.rater == EVERYONE}


def test_rater_models_foretell_a_held_out_person(pandalm):
    votes, judges = votes_of(read_cases(pandalm[0]))
    found = of_everyone(compare_on_held_out(votes, judges, seed=0))
    assert all(one.accuracy.low > 0.9 for one in found.values())
    assert all(abs(one.gain.value) < 0.02 for one in found.values())  # people agree so well that no model helps


def segments(pair):
    """WMT 2023: by segment, by system, by rater, the MQM error score (5 major, 1 minor, 0.1 punctuation, 25 none)."""
    path = WMT / pair / f"sxs_mqm_generalMT2023_{pair}.3ratingsPerSegment.tsv.tar.gz"
    with tarfile.open(path) as archive:
        lines = archive.extractfile(archive.getmembers()[0]).read().decode("utf-8").split("\n")
    scores, texts = defaultdict(lambda: defaultdict(float)), {}
    for line in lines[1:]:
        parts = line.rstrip("\r").split("\t")
        if len(parts) < 9 or not parts[3]:
            continue
        system, segment, rater, source, target, category, severity = parts[0], *parts[3:9]
        weight = {"Major": 5.0, "Minor": 0.1 if category.startswith("Fluency/Punctuation") else 1.0}.get(severity, 0.0)
        scores[segment, system][rater] += 25.0 if "Non-translation" in category else weight
        texts[segment, system] = (source, target.replace("<v>", "").replace("</v>", ""))
    return scores, texts


def wmt_cases(pair):
    scores, texts = segments(pair)
    by_segment = defaultdict(list)
    for segment, system in scores:
        by_segment[segment].append(system)
    for segment, systems in by_segment.items():
        judgments = []
        for left, right in combinations(sorted(systems), 2):
            for rater in sorted(set(scores[segment, left]) & set(scores[segment, right])):
                one, other = (round(scores[segment, system][rater], 6) for system in (left, right))
                verdict = "tie" if one == other else "left" if one < other else "right"
                judgments.append(Judgment(left=left, right=right, verdict=verdict, judge=rater, kind="human"))
        yield Case(
            prompt=Prompt(
                id=f"{pair}-{segment}",
                messages=(Message(role="user", content=texts[segment, systems[0]][0]),),
                language=pair,
            ),
            responses=tuple(Response(id=name, text=texts[segment, name][1], author=name) for name in sorted(systems)),
            judgments=tuple(judgments),
        )


@pytest.mark.parametrize(("pair", "num_segments"), [("zhen", 377), ("ende", 104)])
def test_raters_of_translations(pair, num_segments, tmp_path):
    write_cases(tmp_path / "cases.jsonl", wmt_cases(pair))
    one_tier, human = {}, {}
    for aggregate in ("none", "majority"):
        config = Config(aggregate=aggregate)
        summary = summary_of(tmp_path / "cases.jsonl", tmp_path / aggregate, config)
        cases = list(read_cases(tmp_path / aggregate / "cases.jsonl"))
        one_tier[aggregate] = np.mean([len(one.ranking) == 1 for one in cases])
        human[aggregate] = summary["judges"]["by_kind"]["human"]
        assert summary["conflicts"]["overall"]["num_prompts"] == len(cases) == num_segments
        # Numbers are transitive: no rater contradicts himself, whatever the raters together do.
        assert all(judge["conflict_ratio"]["value"] == 0 for judge in summary["judges"]["by_judge"].values())
        assert 0 < summary["agreement"]["alpha"]["all"]["low"] < summary["agreement"]["alpha"]["all"]["high"] < 0.5
    # Three raters together collapse most segments into one tier; a vote helps.
    assert one_tier["none"] > 0.8
    assert one_tier["majority"] < 0.3
    assert human["majority"]["ranking"]["coverage"]["value"] > 5 * human["none"]["ranking"]["coverage"]["value"]
    assert human["majority"]["ranking"]["agreement"]["value"] < 1

    found = of_everyone(compare_on_held_out(*votes_of(cases), seed=0))
    # Strengths within the prompt with the raters' accuracies foretell a held-out rater better at equal coverage.
    assert found["bradley_terry_with_accuracy"].gain.low > 0
