import numpy as np
import pytest

from steelyard.plugins.models.features import Heads, HeadSettings, Labelled, fit_heads


def labelled(num_pairs=60, num_places=3, width=4, telling=1, seed=0):
    """Pairs whose better answer is larger in coordinate 0 of one place; all else is noise."""
    draws = np.random.default_rng(seed)
    features = draws.normal(size=(2 * num_pairs, num_places, width)).astype(np.float32)
    better, worse = np.arange(0, 2 * num_pairs, 2), np.arange(1, 2 * num_pairs, 2)
    features[better, telling, 0] += 4
    return Labelled(features, better, worse, np.ones(num_pairs), np.arange(num_pairs) % 4)


def margins(heads, given):
    scores = heads.score(given.features)
    return scores[given.better] - scores[given.worse]


def test_an_ensemble_uses_every_place_and_separates():
    given = labelled()
    heads = fit_heads(given, HeadSettings("ensemble", (1.0,)))
    assert (np.abs(heads.weights).max(axis=1) > 0).all()
    assert (margins(heads, labelled(seed=1)) > 0).mean() > 0.9


def test_the_score_of_an_ensemble_is_the_mean_of_places_that_each_have_deviation_one():
    given = labelled(num_places=2)
    heads = fit_heads(given, HeadSettings("ensemble", (1.0,)))
    for place in range(2):
        own = np.zeros_like(heads.weights)
        own[place] = 2 * heads.weights[place]
        assert margins(Heads(own), given).std() == pytest.approx(1.0)


@pytest.mark.parametrize("telling", [0, 2])
def test_nested_finds_the_place_that_tells(telling):
    heads = fit_heads(labelled(telling=telling), HeadSettings("nested", (0.1, 1.0, 10.0)))
    assert np.flatnonzero(heads.weights.any(axis=1)).tolist() == [telling]


def test_the_scale_of_a_coordinate_and_what_never_varies_change_nothing():
    given = labelled()
    stretched = given.features.copy()
    stretched[:, :, 1] *= 1000
    stretched[:, :, 2] += 300
    stretched = np.concatenate([stretched, np.full_like(stretched[:, :, :1], 7.0)], axis=2)
    plain = fit_heads(given, HeadSettings("ensemble", (1.0,)))
    scaled = fit_heads(given._replace(features=stretched), HeadSettings("ensemble", (1.0 * 5 / 4,)))
    # C counts per coordinate; the fifth never varies, so that of five is that of four times 5 / 4
    assert scaled.weights[:, 4] == pytest.approx(0)
    assert scaled.weights[:, 1] * 1000 == pytest.approx(plain.weights[:, 1], rel=1e-2, abs=1e-4)
    assert margins(scaled, given._replace(features=stretched)) == pytest.approx(margins(plain, given), rel=1e-2, abs=1e-2)  # fmt: skip # noqa: E501


def test_weights_of_pairs_count():
    features = np.array([[[1.0, 0]], [[0, 0]], [[0, 0]], [[1.0, 0]]], np.float32)
    given = Labelled(features, np.array([0, 2]), np.array([1, 3]), np.array([1.0, 5.0]), np.array([0, 1]))
    assert fit_heads(given, HeadSettings("ensemble", (1.0,))).weights[0, 0] < 0
