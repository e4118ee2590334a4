import msgspec
import numpy as np
import pytest

from steelyard.core.errors import EvidenceError
from steelyard.core.plugins import build
from steelyard.core.types import Response
from steelyard.curation.filtering_arms import ALL, ARMS, CEILING, FILTERED, HUMAN, ORACLE, RANDOM
from steelyard.io.cases import write_cases
from steelyard.stages.filters.downstream import downstream
from steelyard.stages.filters.evidence import read_study
from steelyard.stages.filters.settings import Config
from supervision_files import judged


def noisy(number, *, wrong, human=True):
    """People prefer the answer of good marks; the judge too, but for a share of verdicts drawn by chance."""
    draws = np.random.default_rng(0)
    found = []
    for index in range(number):
        marks = ["".join(draws.choice(list(letters), 3)) for letters in ("ABCD", "WXYZ")]
        verdict = "a<b" if draws.random() < wrong else "a>b"
        found.append(
            judged(str(index), llm=(verdict,), human=("a>b",) if human else (), texts=(f"{marks[0]}1", f"{marks[1]}2"))
        )
    return found


def run(tmp_path, cases, **settings):
    write_cases(tmp_path / "cases.jsonl", cases)
    model = build("models", "ngram", {"train": str(tmp_path / "cases.jsonl"), "longest": 1, "min_documents": 1})
    config = Config(**{"judge": "gpt", "repetitions": 1, "folds": 3} | settings)
    return downstream(model, read_study(cases, config, where="cases.jsonl"), config)


def by_arm(record):
    return {row["arm"]: row for row in record["arms"]}


def test_a_filter_mends_what_a_judge_that_is_mostly_wrong_would_spoil(tmp_path):
    (record,) = run(tmp_path, noisy(60, wrong=0.9), human_shares=(0.2,))
    found = by_arm(record)
    assert list(found) == list(ARMS)
    # learnt from 90 % wrong verdicts the model is wrong; people's few pairs, and what agrees with them, are right
    assert found[ALL]["accuracy"]["value"] < 0.2
    for name in (HUMAN, FILTERED, ORACLE, CEILING):
        assert found[name]["accuracy"]["value"] > 0.8, name
    assert found[FILTERED][f"minus {ALL}"]["low"] > 0
    assert found[FILTERED][f"minus {RANDOM}"]["value"] >= 0
    assert found[ALL]["accuracy"]["n"] == 60
    # three folds of twenty: of the 40 others a fifth is people's, and each has one pair
    assert found[HUMAN]["num_pairs"] == 8
    assert found[ALL]["num_pairs"] == found[CEILING]["num_pairs"] == 40
    assert found[RANDOM]["num_pairs"] == found[FILTERED]["num_pairs"]


def test_with_a_judge_who_is_always_right_all_verdicts_are_as_good_as_peoples(tmp_path):
    (record,) = run(tmp_path, noisy(40, wrong=0.0), human_shares=(0.5,))
    found = by_arm(record)
    assert found[ALL]["accuracy"]["value"] == found[CEILING]["accuracy"]["value"] == 1.0
    itself = found[ALL][f"minus {ALL}"]
    assert (itself["value"], itself["n"]) == (0.0, 40)
    assert itself["low"] < 0 < itself["high"]  # forty prompts leave room for some


def test_verdicts_on_answers_that_people_did_not_judge_have_no_oracle(tmp_path):
    cases = []
    for case in noisy(30, wrong=0.0):
        own = [one for one in case.judgments if one.kind == "human"]
        other = [msgspec.structs.replace(one, left="c", right="d") for one in case.judgments if one.kind != "human"]
        more = (Response(id="c", text="AB"), Response(id="d", text="YZ"))
        cases.append(msgspec.structs.replace(case, responses=(*case.responses[:2], *more), judgments=(*own, *other)))
    (record,) = run(tmp_path, cases, human_shares=(0.5,))
    assert ORACLE not in by_arm(record)
    assert by_arm(record)[ALL]["accuracy"]["value"] == 1.0


def test_too_few_prompts_and_shares_without_a_peoples_pair_are_refused(tmp_path):
    with pytest.raises(EvidenceError, match="too few for 3 folds"):
        run(tmp_path, noisy(5, wrong=0.0))
    silent = [*noisy(1, wrong=0.0), *(judged(f"s{number}") for number in range(40))]
    with pytest.raises(EvidenceError, match="human_shares"):
        run(tmp_path, silent, human_shares=(0.1,))
    assert run(tmp_path, noisy(5, wrong=0.0), human_shares=()) == []
