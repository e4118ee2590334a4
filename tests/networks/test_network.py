import pytest
import torch

import tiny
from steelyard.core.errors import ModelError
from steelyard.networks.loading import check_rows, initialise_head, load_network, load_tokenizer
from steelyard.networks.reward_network import RewardNetwork, padded

ROWS = [[5, 6, 7], [8], [9, 10, 11, 12, 13], [6, 2, 7, 2]]


@pytest.fixture
def network(tmp_path):
    return load_network(tiny.save_classifier(tmp_path / "m"), dtype="float32")[0].eval()


def scores(network, rows, side="right", filler=0):
    with torch.no_grad():
        return network(*padded(rows, filler=filler, side=side))


def test_the_head_stays_in_float32_and_keeps_close_rewards_apart(tmp_path):
    network, is_trained = load_network(tiny.save_classifier(tmp_path / "m"), dtype="bfloat16")
    assert is_trained
    assert network.head.weight.dtype == torch.float32
    assert network.backbone.embed_tokens.weight.dtype == torch.bfloat16
    stored = load_network(str(tmp_path / "m"), dtype="float32")[0].head.weight
    assert torch.equal(network.head.weight, stored)
    with torch.autocast("cpu", torch.bfloat16):
        assert scores(network, ROWS).dtype == torch.float32


def test_a_missing_head_is_told_and_drawn_from_the_seed_alone(tmp_path):
    path = tiny.save_base(tmp_path / "base")
    first, is_trained = load_network(path, dtype="float32")
    assert not is_trained
    initialise_head(first, seed=1)
    torch.rand(7)
    second = load_network(path, dtype="float32")[0]
    initialise_head(second, seed=1)
    assert torch.equal(first.head.weight, second.head.weight)
    initialise_head(second, seed=2)
    assert not torch.equal(first.head.weight, second.head.weight)
    assert first.head.weight.std().item() == pytest.approx(1 / 33, rel=0.5)


def test_what_cannot_be_a_reward_model_is_refused(tmp_path):
    with pytest.raises(ModelError, match="cannot be loaded as a scalar reward model"):
        load_network(str(tmp_path), dtype="float32")
    with pytest.raises(ModelError, match="holds no model"):
        load_tokenizer(str(tmp_path))
    (tmp_path / "bare").mkdir()
    (tmp_path / "bare" / "config.json").write_text('{"model_type": "absent"}')
    with pytest.raises(ModelError, match="has no tokenizer that loads"):
        load_tokenizer(str(tmp_path / "bare"))
    with pytest.raises(ModelError, match="there is no such model folder"):
        load_tokenizer(str(tmp_path / "absent"))
    from transformers import BertConfig, BertForSequenceClassification

    small = BertConfig(
        hidden_size=16, intermediate_size=16, num_hidden_layers=1, num_attention_heads=2, vocab_size=50, num_labels=1
    )
    BertForSequenceClassification(small).save_pretrained(tmp_path / "bert")
    with pytest.raises(ModelError, match="has no scalar head named 'score'"):
        load_network(str(tmp_path / "bert"), dtype="float32")


def test_an_id_beyond_the_vocabulary_is_refused(network):
    check_rows(ROWS, network, where="m")
    with pytest.raises(ModelError, match=r"m: token id 400, and the model has 400 embeddings"):
        check_rows([[1, 400]], network, where="m")


def test_a_row_longer_than_a_table_of_positions_is_refused():
    from transformers import GPT2Config, GPT2ForSequenceClassification

    settings = GPT2Config(
        vocab_size=400, n_positions=64, n_embd=32, n_layer=1, n_head=4, num_labels=1, bos_token_id=1, eos_token_id=2
    )
    model = RewardNetwork(GPT2ForSequenceClassification(settings))
    check_rows([[1] * 64], model, where="m")
    with pytest.raises(
        ModelError, match="m: a conversation has 65 tokens, and the model has embeddings for 64 positions"
    ):
        check_rows([[1] * 65], model, where="m")


def test_computed_positions_have_no_end(network):
    check_rows([[1] * 600], network, where="m")  # the tiny model names 512


def test_a_head_of_two_labels_is_refused(tmp_path):
    from transformers import Qwen2ForSequenceClassification

    Qwen2ForSequenceClassification(tiny.config(num_labels=2, pad_token_id=0)).save_pretrained(tmp_path / "two")
    with pytest.raises(ModelError, match="its head has 2 labels, and a reward is one number"):
        load_network(str(tmp_path / "two"), dtype="float32")


def test_two_models_in_one_process_keep_their_own_tokenizers(tmp_path):
    first = load_tokenizer(tiny.save_classifier(tmp_path / "a", template=tiny.CHATML))
    second = load_tokenizer(tiny.save_classifier(tmp_path / "b", template=tiny.WITH_BOS))
    assert (first.chat_template, second.chat_template) == (tiny.CHATML, tiny.WITH_BOS)


def test_the_network_reads_any_classifier(network):
    assert RewardNetwork(network.classifier).backbone is network.classifier.model
