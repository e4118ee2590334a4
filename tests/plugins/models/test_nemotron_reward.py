import pytest

import tiny_families
from steelyard.core.errors import ModelError
from steelyard.core.plugins import build
from steelyard.core.types import Case, Response
from strategies import prompt

CASE = Case(
    prompt=prompt("p", "why?"), responses=tuple(Response(id=text, text=text) for text in ("因为。", "no", "z" * 40))
)


def test_the_reward_is_the_logit_that_transformers_generates_for_the_first_id(tmp_path):
    import torch
    from transformers import LlamaForCausalLM

    folder = tiny_families.save_nemotron_reward(tmp_path)
    plain = LlamaForCausalLM.from_pretrained(folder).eval()
    (line,) = build("models", "nemotron_reward", {"path": folder}).score([CASE])
    for response in CASE.responses:
        ids = torch.tensor([tiny_families.chat_ids(folder, CASE, response)])
        made = plain.generate(
            ids, attention_mask=torch.ones_like(ids), max_new_tokens=1, do_sample=False,
            return_dict_in_generate=True, output_scores=True, pad_token_id=0,
        )  # fmt: skip
        assert line.scores[response.id] == pytest.approx(made["scores"][0][0][0].item(), abs=1e-4)


def test_where_output_and_embedding_are_one_the_embedding_is_read(tmp_path):
    from safetensors.torch import save_file

    folder = tiny_families.save_nemotron_reward(tmp_path, tie_word_embeddings=True)
    weights = tiny_families.stored(folder)
    del weights["lm_head.weight"]
    save_file(weights, tmp_path / "model.safetensors")
    (line,) = build("models", "nemotron_reward", {"path": folder}).score([CASE])
    row = weights["model.embed_tokens.weight"][0].double().numpy()
    last = tiny_families.hidden_states(folder, tiny_families.chat_ids(folder, CASE, CASE.responses[1]))[-1]
    assert line.scores["no"] == pytest.approx(row @ last, abs=1e-4)


def test_a_model_without_an_output_layer_is_refused(tmp_path):
    folder = tiny_families.save_grm(tmp_path)
    with pytest.raises(ModelError, match=r"has no lm_head\.weight"):
        build("models", "nemotron_reward", {"path": folder})
