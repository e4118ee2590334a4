import pytest
import torch

import tiny
from steelyard.networks.loading import load_network
from steelyard.networks.reward_network import padded

ROWS = [[5, 6, 7], [8], [9, 10, 11, 12, 13], [6, 2, 7, 2]]


@pytest.fixture
def network(tmp_path):
    return load_network(tiny.save_classifier(tmp_path / "m"), dtype="float32")[0].eval()


def scores(network, rows, side="right", filler=0):
    with torch.no_grad():
        return network(*padded(rows, filler=filler, side=side))


def test_rows_become_a_rectangle_on_either_side():
    ids, attended = padded([[1, 2], [3]], filler=9, side="left")
    assert ids.tolist() == [[1, 2], [9, 3]]
    assert attended.tolist() == [[True, True], [False, True]]
    assert padded([[1, 2], [3]], filler=9)[0].tolist() == [[1, 2], [3, 9]]


@pytest.mark.parametrize("side", ["left", "right"])
@pytest.mark.parametrize("filler", [0, 2])
def test_the_reward_is_read_at_the_last_attended_token_whatever_pads(network, side, filler):
    # Row 3 has the end-of-text token 2 in its middle and at its end, and padding may be that very token.
    alone = torch.cat([scores(network, [row]) for row in ROWS])
    assert torch.allclose(scores(network, ROWS, side, filler), alone, atol=1e-5)


def test_plain_transformers_gives_the_same_reward(network):
    with torch.no_grad():
        plain = torch.cat([network.classifier(torch.tensor([row])).logits[:, 0] for row in ROWS])
    assert torch.allclose(scores(network, ROWS), plain, atol=1e-6)
