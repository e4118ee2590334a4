import os
import subprocess
import sys

import numpy as np
import pytest

from steelyard.core.errors import ConfigError, EvidenceError, FileError
from steelyard.core.plugins import build
from steelyard.core.types import Case, Pair, Response
from steelyard.io.cases import write_cases
from strategies import prompt
from toy_prompts import toy_prompts


def two(id, better, worse, text=None, **fields):
    return Case(
        prompt=prompt(id, text or f"question {id}"),
        responses=(Response(id="b", text=better), Response(id="w", text=worse)),
        ranking=(("b",), ("w",)),
        **fields,
    )


def trained(tmp_path, cases, **settings):
    write_cases(tmp_path / "train.jsonl", cases)
    return build("models", "ngram", {"train": str(tmp_path / "train.jsonl"), "min_documents": 1} | settings)


def margin(model, given):
    (line,) = model.score([given])
    return line.scores["b"] - line.scores["w"]


def test_it_learns_what_the_better_answers_have_in_common(tmp_path):
    model = trained(tmp_path, [two(str(index), f"好的{index}", f"不行{index}") for index in range(20)])
    assert margin(model, two("new", "好的呀", "不行呀")) > 0
    assert margin(model, two("new", "不行呀", "好的呀")) < 0
    assert margin(model, two("new", "same", "same")) == 0


def test_the_weights_minimise_the_bradley_terry_loss(tmp_path):
    cases = [two(str(index), better, worse) for index, (better, worse) in enumerate([("ab", "cd"), ("ad", "cb")] * 3)]
    model = trained(tmp_path, cases, longest=1, inverse_regularisation=2.0)
    list(model.score([two("new", "a", "b")]))
    fitted = model.fitted[None]
    table = fitted.features.transform(
        [text for case in cases for text in (case.responses[0].text, case.responses[1].text)]
    )
    x = np.asarray(table[::2].todense() - table[1::2].todense())
    # the gradient of |w|^2 / 2 + C * sum(-log sigmoid(x w)) is w - C * sum(x / (1 + exp(x w))): zero at the minimum
    gradient = fitted.weights - 2.0 * (x / (1 + np.exp(x @ fitted.weights))[:, None]).sum(axis=0)
    assert np.abs(gradient).max() < 1e-4
    assert np.abs(fitted.weights).max() > 0.1


def test_swapping_all_labels_negates_every_score(tmp_path):
    pairs = [("abc", "xyz"), ("abd", "xyw"), ("bca", "zyx")]
    (tmp_path / "one").mkdir()
    (tmp_path / "two").mkdir()
    there = trained(tmp_path / "one", [two(str(index), *pair) for index, pair in enumerate(pairs)])
    back = trained(tmp_path / "two", [two(str(index), *pair[::-1]) for index, pair in enumerate(pairs)])
    new = two("new", "abx", "yzc")
    assert margin(there, new) == pytest.approx(-margin(back, new), abs=1e-4)
    assert abs(margin(there, new)) > 0.01


def test_a_prompt_of_the_training_cases_is_scored_by_a_model_that_has_not_seen_it(tmp_path):
    # The only sign of a right answer to this prompt is in its own training case: a model that saw it would know.
    others = [two(str(index), "aaa", "bbb") for index in range(30)]
    own = two("leak", "ξξξ", "ψψψ", text="the leaked question")
    model = trained(tmp_path, [*others, own])
    assert margin(model, own) == 0
    unseen = two("new", "ξξξ", "ψψψ", text="another question")
    assert margin(model, unseen) > 0
    assert margin(model, two("respaced", "ξξξ", "ψψψ", text="  The leaked\nQUESTION ")) == 0


def test_scores_do_not_depend_on_what_else_is_scored(tmp_path):
    cases = [two(str(index), f"ab{index}", f"cd{index}") for index in range(12)]
    model = trained(tmp_path, cases)
    together = list(model.score([*cases, two("new", "ab", "cd")]))
    alone = [next(iter(model.score([case]))) for case in (*cases, two("new", "ab", "cd"))]
    assert together == alone


def test_weights_of_pairs_count_in_training(tmp_path):
    cases = [
        two("1", "a", "b", pairs=(Pair(better="b", worse="w", weight=10.0),)),
        two("2", "b", "a", pairs=(Pair(better="b", worse="w", weight=1.0),)),
    ]
    model = trained(tmp_path, cases, longest=1)
    assert margin(model, two("new", "a", "b")) > 0


def test_training_cases_are_needed_and_must_order_something(tmp_path):
    with pytest.raises(ConfigError, match="needs training cases"):
        build("models", "ngram")
    with pytest.raises(ConfigError, match="folds"):
        trained(tmp_path, [two("1", "a", "b")], folds=1)
    with pytest.raises(FileError):
        list(build("models", "ngram", {"train": str(tmp_path / "absent.jsonl")}).score([two("1", "a", "b")]))
    with pytest.raises(EvidenceError, match="no ordered pair"):
        list(trained(tmp_path, [two("1", "a", "b")]).score([two("1", "a", "b")]))
    with pytest.raises(EvidenceError, match="no text"):
        list(trained(tmp_path, [two("1", "", "")]).score([two("2", "a", "b")]))


def test_its_protocol_knows_the_training_cases_by_content(tmp_path):
    one = trained(tmp_path, [two("1", "a", "b")]).protocol()
    other = trained(tmp_path, [two("1", "a", "c")]).protocol()
    assert one["train"] != other["train"]
    assert {key: value for key, value in one.items() if key != "train"} == {
        key: value for key, value in other.items() if key != "train"
    }


def test_few_prompts_still_leave_something_to_learn_from(tmp_path):
    # Two prompts whose hashes fall together would leave nothing; folds are dealt out, so every prompt has others.
    for index in range(20):
        pairs = [two("1", "a", "b", text=f"one {index}"), two("2", "a", "b", text=f"two {index}")]
        assert margin(trained(tmp_path, pairs), pairs[0]) > 0


SCORES = """
import sys
from steelyard.core.plugins import build
from steelyard.io.cases import read_cases
model = build("models", "ngram", {"train": sys.argv[1]})
print([list(line.scores.values()) for line in model.score(read_cases(sys.argv[1]))])
"""


@pytest.mark.slow
def test_scores_are_the_same_bits_with_the_kernels_of_other_processors(tmp_path):
    write_cases(tmp_path / "train.jsonl", toy_prompts(40, right=True))
    printed = set()
    for kernels in ({}, {"OPENBLAS_CORETYPE": "Nehalem"}, {"OPENBLAS_CORETYPE": "Haswell"}, {"OMP_NUM_THREADS": "2"}):
        environment = {**os.environ, "OMP_NUM_THREADS": "1", **kernels}
        command = [sys.executable, "-c", SCORES, tmp_path / "train.jsonl"]
        done = subprocess.run(command, capture_output=True, text=True, check=True, env=environment)
        printed.add(done.stdout)
    assert len(printed) == 1
    assert len(printed.pop()) > 100
