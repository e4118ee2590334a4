"""Models of frozen features that are fitted to ratings by ridge regression."""

import msgspec
import numpy as np
import pytest
import torch
from scipy import sparse

import tiny
from steelyard.core.errors import ConfigError, EvidenceError, UserError
from steelyard.core.plugins import build
from steelyard.core.types import Case, Rating, Response
from steelyard.io.cases import write_cases
from steelyard.networks.settings import TargetScale
from steelyard.plugins.models._cross_fitted import ridge
from steelyard.plugins.models.features import HeadSettings, Rated, fit_heads
from steelyard.training.losses import LOSSES, LossInputs, PairBatch, RatingBatch
from strategies import prompt

STARS = (0.0, 10.0)
LETTERS = "abcdefgh"


def rated(id, values, *, texts=None, raters=("x",), text=None):
    """A case whose answers have these ratings, each by all raters; null for an answer without one."""
    texts = texts or [f"{LETTERS[place]}{id}" for place in range(len(values))]
    responses = tuple(Response(id=str(place), text=each) for place, each in enumerate(texts))
    ratings = tuple(
        Rating(response=str(place), rater=rater, kind="human", dimension="stars", value=value, range=STARS)
        for place, value in enumerate(values)
        for rater in raters
        if value is not None
    )
    return Case(prompt=prompt(id, text or f"question {id}"), responses=responses, ratings=ratings)


def trained(tmp_path, cases, **settings):
    write_cases(tmp_path / "train.jsonl", cases)
    given = {"train": str(tmp_path / "train.jsonl"), "loss": "mean-squared-error", "min_documents": 1, "longest": 1}
    return build("models", "ngram", given | settings)


def scores(model, case):
    (line,) = model.score([case])
    return [line.scores[response.id] for response in case.responses]


def reference(rows, target, weight, strength):
    """Return weights and intercept by least squares with augmented rows, whose targets are 0."""
    width = rows.shape[1]
    root = np.sqrt(2 * strength * np.asarray(weight, float))
    augmented = np.block([[rows * root[:, None], root[:, None]], [np.eye(width), np.zeros((width, 1))]])
    found = np.linalg.lstsq(augmented, np.concatenate([root * target, np.zeros(width)]), rcond=None)[0]
    return found[:-1], found[-1]


@pytest.mark.parametrize("form", [np.asarray, sparse.csr_matrix])
@pytest.mark.parametrize(("num_rows", "width"), [(40, 5), (12, 30)])
@pytest.mark.parametrize("strength", [0.1, 1.0, 100.0])
def test_ridge_is_the_least_squares_of_augmented_rows(form, num_rows, width, strength):
    draws = np.random.default_rng(num_rows)
    rows, target = draws.normal(size=(num_rows, width)), draws.normal(3, 2, size=num_rows)
    weight = draws.integers(1, 4, size=num_rows)
    weights, intercept = ridge(form(rows), target, weight, inverse_regularisation=strength)
    wanted, shift = reference(rows, target, weight, strength)
    assert weights == pytest.approx(wanted, abs=1e-8)
    assert intercept == pytest.approx(shift, abs=1e-8)


def test_the_weights_minimise_the_loss_of_the_same_name_in_training():
    draws = np.random.default_rng(0)
    rows, target, weight = draws.normal(size=(20, 3)), draws.normal(size=20), draws.integers(1, 4, size=20)
    found, shift = ridge(rows, target, weight, inverse_regularisation=2.0)
    head = torch.tensor(found, requires_grad=True)
    intercept = torch.tensor(shift, dtype=torch.float64, requires_grad=True)
    ratings = RatingBatch(
        torch.arange(20), torch.from_numpy(target), torch.from_numpy(weight).double(), torch.arange(20)
    )
    no_pairs = PairBatch(*(torch.zeros(0, dtype=torch.long) for _ in PairBatch._fields))
    inputs = LossInputs(no_pairs, torch.zeros(0, dtype=torch.bool), 20, ratings)
    terms = LOSSES["mean-squared-error"].terms(torch.from_numpy(rows) @ head + intercept, inputs, None, 0.0)
    ((terms * torch.from_numpy(weight)).sum() * 2 + head.square().sum() / 2).backward()
    assert head.grad is not None
    assert intercept.grad is not None
    assert head.grad.abs().max() < 1e-10
    assert intercept.grad.abs() < 1e-10


@pytest.mark.parametrize("center", ["data", "prompt"])
def test_a_score_is_that_of_least_squares_on_the_same_features(tmp_path, center):
    # Ties, an answer without a rating, one rated answer, two raters of a whole case.
    cases = [
        rated("1", [1.0, 9.0, 9.0], texts=["甲甲", "乙 b", "مرحبا"]),
        rated("2", [4.0, 4.0], texts=["ab", "甲b"], raters=("x", "y")),
        rated("3", [7.0, None], texts=["שלום", "नमस्ते"]),
        rated("4", [2.0, 5.0], texts=["x = 1", "$x^2$"]),
    ]
    model = trained(tmp_path, cases, rating_center=center, inverse_regularisation=3.0)
    new = Case(prompt=prompt("new"), responses=(Response(id="0", text="甲 b"), Response(id="1", text="x")))
    found = scores(model, new)
    features = model.fitted[None].features
    texts = ["甲甲", "乙 b", "مرحبا", "ab", "甲b", "שלום", "x = 1", "$x^2$"]
    # Relative to the prompt a single rating says nothing, and a tie says that both are equal.
    values = {"data": [1, 9, 9, 4, 4, 7, 2, 5], "prompt": [1 - 19 / 3, 9 - 19 / 3, 9 - 19 / 3, 0, 0, None, -1.5, 1.5]}
    used = [place for place, value in enumerate(values[center]) if value is not None]
    target = np.array([values[center][place] for place in used], float)
    weight = np.array([1, 1, 1, 2, 2, 1, 1, 1])[used]
    weights, shift = reference(features.transform([texts[place] for place in used]).toarray(), target, weight, 3.0)
    wanted = features.transform(["甲 b", "x"]).toarray() @ weights + shift
    scale = msgspec.convert(model.protocol()["ratings"], TargetScale)
    assert np.array(found) + scale.mean == pytest.approx(wanted, abs=1e-8)
    assert scale.mean == pytest.approx({"data": (1 + 9 + 9 + 8 + 8 + 7 + 2 + 5) / 10, "prompt": 0.0}[center])
    assert (scale.center, scale.num_ratings) == (center, len(used))


def test_ratings_of_one_answer_a_prompt_are_enough(tmp_path):
    cases = [rated(str(number), [9.0 if number % 2 else 1.0], texts=["good" if number % 2 else "bad"])
             for number in range(20)]  # fmt: skip
    model = trained(tmp_path, cases, inverse_regularisation=1000.0)
    mean = model.scale.mean
    assert [score + mean for score in scores(model, rated("new", [None, None], texts=["good", "bad"]))] == (
        pytest.approx([9, 1], abs=0.1)
    )
    with pytest.raises(EvidenceError, match="no prompt has two responses") as refused:
        list(trained(tmp_path, cases, rating_center="prompt").score(cases[:1]))
    assert "model.rating_center=data" in str(refused.value)


def test_a_training_prompt_has_a_rating_that_does_not_depend_on_its_own(tmp_path):
    others = [rated(str(number), [float(number % 5), 8.0]) for number in range(12)]
    own = [rated("own", values, texts=["ξξ", "a"], text="the leaked question") for values in ([0.0, 1.0], [10.0, 3.0])]
    ratings = []
    for number, each in enumerate(own):
        (tmp_path / str(number)).mkdir()
        model = trained(tmp_path / str(number), [*others, each])
        ratings.append([score + model.scale.mean for score in scores(model, each)])
    assert ratings[0] == pytest.approx(ratings[1], abs=1e-8)


@pytest.mark.parametrize("value", ["NaN", "Infinity", "1e999", '"five"', "null", "true"])
def test_a_rating_that_is_no_number_is_refused_with_its_line(tmp_path, value):
    model = trained(tmp_path, [rated("1", [1.0, 9.0]), rated("2", [3.25, 4.0])])
    path = tmp_path / "train.jsonl"
    path.write_text(path.read_text("utf-8").replace("3.25", value), "utf-8")
    with pytest.raises(UserError, match=r"train\.jsonl:2"):
        list(model.score([rated("3", [1.0])]))


def test_equal_ratings_and_ratings_out_of_range_teach_nothing(tmp_path):
    with pytest.raises(EvidenceError, match="4 rated responses are all 5"):
        list(trained(tmp_path, [rated("1", [5.0, 5.0]), rated("2", [5.0, 5.0])]).score([rated("3", [1.0])]))
    with pytest.raises(EvidenceError, match="outside its range"):
        list(trained(tmp_path, [rated("1", [5.0, 11.0])]).score([rated("3", [1.0])]))
    only_one_varies = [rated("1", [5.0, 6.0]), rated("2", [5.0, 5.0])]
    with pytest.raises(EvidenceError, match="no two different ratings"):
        list(trained(tmp_path, only_one_varies, folds=2).score([only_one_varies[0]]))


def test_cases_without_ratings_are_refused_with_the_settings_of_the_model(tmp_path):
    bare = msgspec.structs.replace(rated("1", [1.0, 2.0]), ratings=(), ranking=(("0",), ("1",)))
    with pytest.raises(EvidenceError, match="no case has a rating") as refused:
        list(trained(tmp_path, [bare]).score([bare]))
    assert "model.loss=bradley-terry" in str(refused.value)


def test_settings_of_ratings_need_their_loss_and_rules_for_pairs_do_not_fit_it(tmp_path):
    for settings, problem in (
        ({"pairs": "tiers"}, "pairs with loss=mean-squared-error, which reads ratings"),
        ({"loss": "bradley-terry", "dimensions": "stars"}, "dimensions with loss=bradley-terry, which reads pairs"),
        ({"loss": "bradley-terry", "rating_center": "prompt"}, "rating_center with loss=bradley-terry"),
        ({"dimensions": {}}, "dimensions is"),
        ({"loss": "binary-cross-entropy"}, "loss"),
    ):
        with pytest.raises(ConfigError, match=problem):
            trained(tmp_path, [rated("1", [1.0, 2.0])], **settings)


def test_a_negative_weight_turns_a_dimension_around(tmp_path):
    cases = [rated(str(number), [9.0, 1.0], texts=["wrong", "right"]) for number in range(10)]
    wrong, right = scores(trained(tmp_path, cases, dimensions={"stars": -1.0}), rated("new", [1.0, 1.0], texts=["wrong", "right"]))  # fmt: skip # noqa: E501
    assert right > wrong


def some_rated(num_rows=40, num_places=3, width=4, telling=1, seed=0):
    """Targets that are three times coordinate 0 of one place, plus 2; all else is noise."""
    draws = np.random.default_rng(seed)
    features = draws.normal(size=(num_rows, num_places, width)).astype(np.float32)
    target = 3.0 * features[:, telling, 0].astype(np.float64) + 2
    return Rated(features, np.arange(num_rows), target, np.ones(num_rows), np.arange(num_rows) % 4)


@pytest.mark.parametrize("telling", [0, 2])
def test_nested_heads_find_the_place_and_predict_the_rating(telling):
    heads = fit_heads(some_rated(telling=telling), HeadSettings("nested", (1.0, 1e6)))
    assert np.flatnonzero(heads.weights.any(axis=1)).tolist() == [telling]
    other = some_rated(telling=telling, seed=1)
    assert heads.score(other.features) == pytest.approx(other.target, abs=1e-3)


def test_an_ensemble_of_ratings_is_the_mean_of_the_ridges_of_its_places():
    given = some_rated(num_places=2)
    heads = fit_heads(given, HeadSettings("ensemble", (2.0,)))
    predicted = []
    for place in range(2):
        rows = given.features[:, place].astype(np.float64)
        rows = rows / rows.std(axis=0) / 4**0.5
        weights, shift = reference(rows, given.target, given.weight, 2.0)
        predicted.append(rows @ weights + shift)
    assert heads.score(given.features) == pytest.approx(np.mean(predicted, axis=0), abs=1e-6)


@pytest.mark.parametrize("center", ["data", "prompt"])
def test_features_of_a_decoder_learn_ratings(tmp_path, center):
    folder = tiny.save_base(tmp_path / "model")
    cases = [rated(str(number), [9.0, 1.0], texts=[f"好的{number}", f"不行{number}"]) for number in range(12)]
    write_cases(tmp_path / "train.jsonl", cases)
    settings = {"path": folder, "train": str(tmp_path / "train.jsonl"), "cache": str(tmp_path / "cache")}
    model = build("models", "features", settings | {"loss": "mean-squared-error", "rating_center": center})
    good, bad = scores(model, rated("new", [1.0, 1.0], texts=["好的99", "不行99"]))
    assert good > bad
    protocol = model.protocol()
    assert protocol["loss"] == "mean-squared-error"
    assert protocol["ratings"]["mean"] == pytest.approx({"data": 5.0, "prompt": 0.0}[center])
