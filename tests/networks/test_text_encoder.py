"""Vectors of texts: each by itself and of length 1, long ones from all their parts; with a tiny random encoder."""

import numpy as np
import pytest
import torch
from transformers import BertConfig, BertModel

import tiny
from steelyard.core.errors import ModelError
from steelyard.core.types import Case, Message, Prompt, Response
from steelyard.io.cases import write_cases
from steelyard.networks.loading import quiet
from steelyard.networks.settings import EncoderSettings
from steelyard.networks.text_encoder import TextEncoder
from steelyard.stages.translate import Config, translate

TEXTS = ("a cat", "一只猫 坐在 垫子上", "قط على الحصيرة", "a much longer text about a dog " * 8, "")


@pytest.fixture(scope="module")
def folder(tmp_path_factory):
    path = tmp_path_factory.mktemp("encoder")
    tokenizer = tiny.tokenizer()
    torch.manual_seed(0)
    config = BertConfig(
        vocab_size=len(tokenizer), hidden_size=16, num_hidden_layers=2, num_attention_heads=2, intermediate_size=16,
        max_position_embeddings=64, pad_token_id=tokenizer.pad_token_id,
    )  # fmt: skip
    with quiet():
        BertModel(config, add_pooling_layer=False).save_pretrained(path)
        tokenizer.save_pretrained(path)
    return str(path)


def vectors(folder, texts, **settings):
    return TextEncoder(EncoderSettings(path=folder, **settings)).vectors(texts)


@pytest.mark.parametrize("pooling", ["mean", "first"])
def test_a_text_has_the_same_vector_whatever_is_encoded_beside_it(folder, pooling):
    together = vectors(folder, TEXTS, pooling=pooling)
    assert np.linalg.norm(together, axis=1) == pytest.approx([1, 1, 1, 1, 0], abs=1e-9)
    for text, vector in zip(TEXTS, together, strict=True):
        assert vectors(folder, [text], pooling=pooling)[0] == pytest.approx(vector, abs=1e-5)


def test_a_long_text_is_the_mean_of_its_parts_by_their_tokens(folder):
    encoder = TextEncoder(EncoderSettings(path=folder, max_length=16))
    ids = tiny.tokenizer()(TEXTS[3]).input_ids
    assert len(ids) > 32
    parts = [ids[start : start + 16] for start in range(0, len(ids), 16)]
    with torch.inference_mode():
        states = [encoder._model(input_ids=torch.tensor([part])).last_hidden_state[0] for part in parts]
    mean = torch.cat(states).double().mean(0).numpy()
    assert encoder.vectors([TEXTS[3]])[0] == pytest.approx(mean / np.linalg.norm(mean), abs=1e-5)


def test_a_folder_without_an_encoder_is_named(tmp_path):
    with pytest.raises(ModelError, match="no such model folder"):
        vectors(str(tmp_path / "none"), ["a"])


def test_translate_compares_meanings_with_the_encoder_that_is_named(folder, tmp_path):
    def item(number, language):
        text = f"{language} {TEXTS[number % 3]} {number}"
        prompt = Prompt(id=f"p{number}", messages=(Message(role="user", content=text),), language=language)
        return Case(prompt=prompt, responses=(Response(id="a", text=text), Response(id="b", text=text * 2)))

    cases = [item(number, language) for number in range(30) for language in ("en", "de")]
    write_cases(tmp_path / "cases.jsonl", cases)
    config = Config(check_only=True, encoder=EncoderSettings(path=folder))
    run = translate(tmp_path / "cases.jsonl", tmp_path / "out", config)
    assert run.inputs["encoder"].path == folder
    assert run.config["encoder"]["path"] == folder
    plain = translate(tmp_path / "cases.jsonl", tmp_path / "plain", Config(check_only=True))
    others = {kind: number for kind, number in run.summary.languages["de"].damage.items() if kind != "meaning"}
    assert others.items() >= plain.summary.languages["de"].damage.items()
