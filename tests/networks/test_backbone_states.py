import numpy as np
import pytest
import torch

import tiny
from steelyard.core.errors import ConfigError, ModelError
from steelyard.networks.features import default_layers, open_backbone, pooled
from steelyard.networks.reading import FeatureSettings


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
    assert [pooled(state, name, 1, 3).item() for name in ("last", "response", "all", "max")] == [-1, 4, 2, 5]


def test_layers_that_are_not_there_and_folders_that_hold_no_decoder(folder, tmp_path):
    with pytest.raises(ConfigError, match="layers"):
        reader(folder, layers=(3,))
    with pytest.raises(ConfigError, match="layers"):
        reader(folder, layers=(0, 1))
    with pytest.raises(ModelError, match="cannot be loaded"):
        reader(str(tmp_path))
