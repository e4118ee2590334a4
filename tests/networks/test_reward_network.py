import pytest
import torch

import tiny
from packed_models import causal, furthest, gradients, prompts, softmax64
from steelyard.networks.loading import load_network
from steelyard.networks.packed_forward import EXACT
from steelyard.networks.reward_network import AnswerReference, PolicyNetwork, padded

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


BETA = 0.3
KINDS = [
    *((kind, {}) for kind in EXACT),
    ("gemma2", {"final_logit_softcapping": 1.5}),
    ("qwen2", {"tie_word_embeddings": True}),
]


@pytest.fixture
def in_float64(monkeypatch):
    monkeypatch.setattr(torch.nn.functional, "softmax", softmax64)


def chosen_rows(seed=0):
    """Rows of two tokens or more: nothing is likely or not before the first has been seen."""
    return [[(5, *row) for row in rows] for rows in prompts(seed)]


def told(model, chosen, *, start=1):
    """The network, told of every row: its answer starts where given, or at its last token; references differ."""
    rows = [row for rows in chosen for row in rows]
    model.references.update(
        {row: AnswerReference(min(start, len(row) - 1), 0.1 * index) for index, row in enumerate(rows)}
    )
    return model


def plain(model, chosen, *, start=1, is_mean=False):
    """One forward of the whole model a row, and the log-probabilities of its answer's tokens in a loop."""
    rewards = []
    for index, row in enumerate(row for rows in chosen for row in rows):
        logits = model.classifier(input_ids=torch.tensor([row]), use_cache=False).logits[0]
        own = [logits[place - 1].log_softmax(-1)[row[place]] for place in range(min(start, len(row) - 1), len(row))]
        value = torch.stack(own).mean() if is_mean else torch.stack(own).sum()
        rewards.append(BETA * (value - 0.1 * index))
    return torch.stack(rewards)


@pytest.mark.parametrize(("kind", "settings"), KINDS)
@pytest.mark.usefixtures("in_float64")
def test_packed_rewards_and_gradients_are_those_of_one_plain_forward_an_answer(kind, settings):
    chosen = chosen_rows()
    model = told(PolicyNetwork(causal(kind, **settings), beta=BETA, is_mean=False), chosen, start=4)
    alone = plain(model, chosen, start=4)
    expected = gradients(alone, model)
    packed = model.packed_rewards(chosen)
    assert alone.std() > 0.3
    assert (alone - packed).abs().max() < 1e-11 * max(1.0, alone.abs().max().item())
    difference, largest = furthest(gradients(packed, model), expected)
    assert largest > 1e-3
    assert difference < 1e-10 * max(1.0, largest)


@pytest.mark.parametrize("is_mean", [False, True])
def test_padded_rewards_are_the_same_on_either_side(is_mean):
    chosen = chosen_rows(1)
    model = told(PolicyNetwork(causal("qwen2"), beta=BETA, is_mean=is_mean), chosen, start=3)
    rows = [row for rows in chosen for row in rows]
    expected = plain(model, chosen, start=3, is_mean=is_mean)
    for side in ("left", "right"):
        found = model(*padded(rows, filler=0, side=side))
        assert torch.allclose(found, expected, rtol=1e-5, atol=1e-6)
    assert torch.allclose(model.packed_rewards(chosen), expected, rtol=1e-5, atol=1e-6)


def test_a_policy_that_is_its_own_reference_rewards_nothing():
    chosen = chosen_rows()
    model = PolicyNetwork(causal("llama", torch.float32), beta=BETA, is_mean=False)
    with torch.no_grad():
        rewards = model.packed_rewards(chosen) / BETA
    rows = [row for rows in chosen for row in rows]
    model.references.update({row: AnswerReference(1, value) for row, value in zip(rows, rewards.tolist(), strict=True)})
    assert model.packed_rewards(chosen).abs().max() < 1e-4


def test_no_row_of_vocabulary_size_is_kept_for_the_backward_pass():
    model = PolicyNetwork(causal("qwen2", vocab_size=5000), beta=BETA, is_mean=False)
    kept = []
    with torch.autograd.graph.saved_tensors_hooks(lambda one: kept.append(one.shape) or one, lambda one: one):
        model.packed_rewards(chosen_rows())
    assert not [shape for shape in kept if 5000 in shape and shape != model.head.weight.shape]


def test_a_row_that_it_was_not_told_of_is_scored_from_its_second_token():
    model = PolicyNetwork(causal("qwen2"), beta=1.0, is_mean=False)
    rows = [[(5, 6, 7)]]
    logits = model.classifier(input_ids=torch.tensor(rows[0])).logits[0].log_softmax(-1)
    assert model.packed_rewards(rows).item() == pytest.approx((logits[0, 6] + logits[1, 7]).item(), rel=1e-5)
