import numpy as np
import pytest
import torch

import tiny
from steelyard.core.errors import ConfigError, ModelError, OutputError
from steelyard.core.types import Case, Response
from steelyard.networks.features import FeatureStore, TextTokens, default_layers, locate_answer, open_backbone, pool
from steelyard.networks.settings import FeatureSettings
from strategies import case, prompt


@pytest.fixture(scope="module")
def folder(tmp_path_factory):
    return tiny.save_base(tmp_path_factory.mktemp("backbone") / "model")


def reader(folder, **settings):
    return open_backbone(FeatureSettings(path=folder, **settings))


def test_states_are_those_of_the_whole_model_layer_by_layer(folder):
    from transformers import AutoModel

    ids = (5, 17, 3, 99, 42, 7)
    model = AutoModel.from_pretrained(folder, dtype=torch.float32).eval()
    with torch.no_grad():
        whole = model(input_ids=torch.tensor([ids]), output_hidden_states=True).hidden_states
    found = reader(folder, layers=(1, 2), poolings=("last", "all", "response", "max")).states(ids, 2, 5)
    for place, layer in ((0, 1), (4, 2)):
        state = whole[layer][0].numpy()
        expected = [state[5], state.mean(0), state[2:5].mean(0), state[2:5].max(0)]
        for own, row in zip(found[place : place + 4], expected, strict=True):
            np.testing.assert_allclose(own, row, atol=1e-5)


def test_layers_above_the_deepest_are_cut_away_and_change_nothing(folder):
    ids = (5, 17, 3)
    cut, whole = reader(folder, layers=(1,)), reader(folder, layers=(1, 2))
    assert len(cut.decoder.layers) == 1
    np.testing.assert_array_equal(cut.states(ids, 1, 3), whole.states(ids, 1, 3)[:4])


def test_default_layers_reach_from_a_third_of_the_depth_to_the_last():
    assert default_layers(30) == (10, 15, 20, 25, 30)
    assert default_layers(18) == (6, 9, 12, 15, 18)
    assert default_layers(2) == (1, 2)
    assert default_layers(1) == (1,)


def test_pooling_is_what_its_name_says():
    state = torch.tensor([[1.0], [5.0], [3.0], [-1.0]])
    assert [pool(state, name, 1, 3).item() for name in ("last", "response", "all", "max")] == [-1, 4, 2, 5]


def test_layers_that_are_not_there_and_folders_that_hold_no_decoder(folder, tmp_path):
    with pytest.raises(ConfigError, match="layers"):
        reader(folder, layers=(3,))
    with pytest.raises(ConfigError, match="layers"):
        reader(folder, layers=(0, 1))
    with pytest.raises(ModelError, match="cannot be loaded"):
        reader(str(tmp_path))


def library(folder, cache, **settings):
    return FeatureStore(FeatureSettings(path=folder, cache=str(cache), **settings))


def test_the_answer_is_where_the_tokens_differ_from_those_of_an_empty_one():
    assert locate_answer((1, 2, 8, 9, 3), (1, 2, 3)) == TextTokens((1, 2, 8, 9, 3), 2, 4)
    assert locate_answer((1, 2, 3), (1, 2, 3)) == TextTokens((1, 2, 3), 2, 3)
    assert locate_answer((1, 2, 8, 9), (1, 2, 3)) == TextTokens((1, 2, 8, 9), 2, 4)  # cut: the EOS token is not there
    # an answer that begins and ends like the marks around it: nothing is counted twice
    assert locate_answer((1, 2, 3, 3), (1, 2, 3)) == TextTokens((1, 2, 3, 3), 3, 4)


def test_every_text_is_read_once_and_kept_for_other_runs(folder, tmp_path):
    first = library(folder, tmp_path)
    cases = [case("1", "ab", text="Why?"), case("2", "ba", text="Why?")]  # the same prompt text and the same answers
    found = first.features(cases)
    assert found.shape == (4, 2 * 4, 32)
    np.testing.assert_array_equal(found[[0, 1]], found[[3, 2]])
    kept = sorted(tmp_path.rglob("*.npy"))
    assert len(kept) == 2
    second = library(folder, tmp_path)
    np.testing.assert_array_equal(second.features(cases), found)
    assert "reader" not in vars(second), "the backbone was loaded though nothing had to be read"
    kept[0].unlink()
    third = library(folder, tmp_path)
    np.testing.assert_array_equal(third.features(cases), found)
    assert "reader" in vars(third)


def test_what_features_depend_on_is_in_the_name_of_their_file(folder, tmp_path):
    for settings in ({}, {"layers": (1,)}, {"poolings": ("last",)}, {"dtype": "bfloat16"}, {"chat_template": "plain"}):
        library(folder, tmp_path, **settings).features([case("1", "a")])
    assert len(list(tmp_path.rglob("*.npy"))) == 5


def test_a_tokenizer_without_a_template_gets_the_plain_one(tmp_path):
    bare = tiny.save_base(tmp_path / "bare", template=None)
    named = library(bare, tmp_path / "cache", chat_template="plain")
    assert library(bare, tmp_path / "cache").rendering == named.rendering


def test_a_long_text_is_read_to_its_cut(folder, tmp_path):
    long = Case(prompt=prompt("1"), responses=(Response(id="a", text="word " * 400),))
    assert np.isfinite(library(folder, tmp_path, max_length=32).features([long])).all()


def test_a_cache_that_cannot_be_written_is_named(folder, tmp_path):
    (tmp_path / "file").write_text("no folder")
    with pytest.raises(OutputError, match="cache"):
        library(folder, tmp_path / "file").features([case("1", "a")])
