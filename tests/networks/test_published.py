import numpy as np
import pytest

import tiny_families
from steelyard.core.errors import ModelError
from steelyard.core.plugins import build
from steelyard.core.types import Case, Response
from steelyard.networks.published import read_last
from strategies import prompt

WORDS = ["你好", "world", "שלום", "x", "answer is here", "नमस्ते दुनिया", "一二三四五六七八九十"]


def many(number=8):
    return [
        Case(
            prompt=prompt(f"p{index}", f"question {index}"),
            responses=tuple(
                Response(
                    id=str(place), text=" ".join(WORDS[(index + step) % 7] for step in range(1 + (index * place) % 9))
                )
                for place in range(4)
            ),
        )
        for index in range(number)
    ]


def rewards(kind, folder, cases, **settings):
    lines = list(build("models", kind, {"path": folder, **settings}).score(cases))
    assert [line.prompt for line in lines] == [one.prompt.id for one in cases]
    return {(line.prompt, name): score for line in lines for name, score in line.scores.items()}


@pytest.mark.parametrize("kind", ["armorm", "qrm", "internlm2_reward"])
def test_scores_do_not_depend_on_batch_padding_or_order(tmp_path, kind):
    folder, cases = tiny_families.FAMILIES[kind](tmp_path), many()
    reference = rewards(kind, folder, cases, batch_size=1)
    assert np.std(list(reference.values())) > 0.01
    for settings in ({"batch_size": 8}, {"padding": "left"}, {"padding": "left", "tokens_per_forward": 200}):
        for order in (cases, cases[::-1]):
            found = rewards(kind, folder, order, **settings)
            assert max(abs(found[key] - reference[key]) for key in reference) < 2e-5


def test_the_head_stays_in_float32_where_the_decoder_does_not(tmp_path):
    import torch

    folder = tiny_families.save_qrm(tmp_path)
    model = build("models", "qrm", {"path": folder, "dtype": "bfloat16"})
    assert {one.dtype for one in model.network.backbone.parameters()} == {torch.bfloat16}
    stored = tiny_families.stored(folder)["regression_layer.weight"]
    assert torch.equal(model.family.head.regression_layer.weight.cpu(), stored)
    found, exact = rewards("qrm", folder, many(2), dtype="bfloat16"), rewards("qrm", folder, many(2))
    assert np.corrcoef([found[key] for key in exact], list(exact.values()))[0, 1] > 0.99
    assert model.protocol()["dtype"] == "bfloat16"


def test_an_answer_over_the_limit_is_cut_only_by_name(tmp_path):
    folder = tiny_families.save_grm(tmp_path)
    long = Case(prompt=prompt("p"), responses=(Response(id="a", text="word " * 200), Response(id="b", text="x")))
    (line,) = build("models", "grm", {"path": folder, "max_length": 60}).score([long])
    assert (line.scores["a"], line.unscored) == (None, {"a": "too long"})
    assert line.scores["b"] is not None
    (cut,) = build("models", "grm", {"path": folder, "max_length": 60, "over_length": "left"}).score([long])
    assert cut.scores["a"] is not None
    assert cut.unscored == {}


def test_an_id_without_an_embedding_is_refused(tmp_path):
    folder = tiny_families.save_internlm2_reward(tmp_path, reward_token_id=5000)
    with pytest.raises(ModelError, match=r"token id 5000, and the model has 420 embeddings"):
        list(build("models", "internlm2_reward", {"path": folder}).score(many(1)))


def test_the_last_token_is_read():
    assert read_last([7, 8, 9]) == (2,)
