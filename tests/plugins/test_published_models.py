import csv
from pathlib import Path

import pytest

import tiny_families
from steelyard.core.plugins import build, kinds
from steelyard.core.types import Case, Response
from steelyard.plugins.judges._texts import style_named
from steelyard.plugins.reward_models import published_model, published_models
from strategies import prompt

# The names as the papers' tables print them: CHEEMS, Tables 2 and 8; M-RewardBench, Tables 9, 10 and 5.
CHEEMS = """Skywork-Reward-Gemma-2-27B, Skywork-Reward-Gemma-2-27B-v0.2, Llama-3.1-Nemotron-70B-Reward-HF,
Llama-3-OffsetBias-RM-8B, RM-Mistral-7B, URM-LLaMa-3-8B, ArmoRM-Llama3-8B-v0.1, Skywork-Reward-Llama-3.1-8B-v0.2,
URM-LLaMa-3.1-8B, GRM-Llama3-8B-rewardmodel-ft, QRM-Llama3.1-8B, Skywork-Reward-Llama-3.1-8B, FsfairX-LLaMA3-RM-v0.1,
RM-Gemma-7B, internlm2-20b-reward, internlm2-7b-reward, BTRM-Qwen2-7b-0613, RM-Gemma-2B, internlm2-1-8b-reward,
GRM-llama3-8B-distill, GRM-Gemma-2B-rewardmodel-ft, Gemma-2B-rewardmodel-ft, GRM-gemma2-2B-rewardmodel-ft,
Skywork-Critic-Llama-3.1-70B, CompassJuderger-1-14B-Instruct, CompassJuderger-1-32B-Instruct, Qwen2.5-72B-Instruct,
Skywork-Critic-Llama-3.1-8B, GPT4o, Doubao-pro-128k, Qwen2.5-7B-Instruct, Llama-3-OffsetBias-8B, Llama-3.1-70B-Instruct,
CompassJuderger-1-1.5B-Instruct, Llama-3.1-8B-Instruct, GPT3.5-turbo, CompassJuder-1-14B-Instruct,
CompassJuder-1-32B-Instruct, GPT-4o, CheemsRM (Ours)"""
MREWARDBENCH = """GPT-4 Turbo, GPT-4o, Gemma 2 9B, URM LLaMa 3.1 8B, Llama 3.1 70B, Aya Expanse 32B, Llama 3 70B,
BTRM Qwen 2 7B, Command R+, Tülu 2 13B DPO, Eurus RM 7B, Mistral 7B DPO, Tülu 2.5 13B RM, Zephyr 7B Beta,
Aya Expanse 8B, Llama 3.1 8B, Command R, Llama 3 8B, Mistral 7B v0.3, StableLM Zephyr 3B, Mistral 7B v0.2, Gemma 1.1 7B,
Qwen1.5 4B Chat, Tülu 2.5 13B Pref. Mix RM, Tülu 2 DPO 7B, Nous Hermes 2 Mistral 7B DPO"""


def listed(text):
    return [name.strip() for name in text.replace("\n", " ").split(", ")]


@pytest.mark.parametrize(("paper", "names"), [("cheems", CHEEMS), ("m-rewardbench", MREWARDBENCH)])
def test_every_model_that_a_table_names_has_a_row(paper, names):
    for name in listed(names):
        row = published_model(name)
        assert row is not None, name
        assert paper in row.papers, name


def test_no_row_is_of_no_paper_and_no_name_stands_twice():
    rows = published_models()
    names = [name for row in rows for name in (row.name, *row.names)]
    assert len(names) == len(set(names))
    assert set(names) <= {"CheemsRM", *listed(CHEEMS), *listed(MREWARDBENCH)}
    hubs = [row.hub for row in rows if row.hub]
    assert len(hubs) == len(set(hubs))


def test_every_adapter_is_a_kind_and_states_fit_the_kinds_of_model():
    for row in published_models():
        if row.kind == "generative":
            assert (row.adapter, row.state in ("endpoint", "api")) == ("llm_judge", True), row.name
            assert (row.state == "api") == (row.hub is None), row.name
            assert style_named(row.settings["judge.style"]).form, row.name
        else:
            assert row.adapter in kinds("models"), row.name
            assert row.state in ("tested", "unverified"), row.name
            assert (row.kind == "implicit") == (row.adapter == "implicit") == ("reference" in row.settings), row.name
            assert row.quirks, row.name
    assert {row.adapter for row in published_models() if row.state == "unverified"} == {"urm"}


def test_a_model_is_found_by_any_of_its_names():
    armorm = published_model("RLHFlow/ArmoRM-Llama3-8B-v0.1")
    assert armorm is not None
    assert (armorm.adapter, armorm.dtype) == ("armorm", "bfloat16")
    assert published_model("rlhflow/armorm-llama3-8b-v0.1/") == armorm == published_model("ArmoRM-Llama3-8B-v0.1")
    assert published_model("somebody/else") is None


PLAIN_HEADS = {
    "Gemma2": {"head_dim": 8, "query_pre_attn_scalar": 16, "attn_logit_softcapping": 5.0, "sliding_window": 16},
    "Gemma": {"head_dim": 8},
    "Llama": {
        "rope_parameters": {
            "rope_type": "llama3", "rope_theta": 500000.0, "factor": 8.0, "low_freq_factor": 1.0,
            "high_freq_factor": 4.0, "original_max_position_embeddings": 128,
        }
    },
    "Mistral": {"sliding_window": None},
    "Qwen2": {},
}  # fmt: skip


@pytest.mark.parametrize("name", PLAIN_HEADS)
def test_each_architecture_of_the_plain_heads_is_scored_as_transformers_scores_it(tmp_path, name):
    import torch
    import transformers

    config = getattr(transformers, f"{name}Config")(
        vocab_size=tiny_families.VOCABULARY, hidden_size=32, intermediate_size=48, num_hidden_layers=2,
        num_attention_heads=4, num_key_value_heads=2, max_position_embeddings=512, num_labels=1, pad_token_id=0,
        **PLAIN_HEADS[name],
    )  # fmt: skip
    with torch.random.fork_rng():
        torch.manual_seed(4)
        plain = getattr(transformers, f"{name}ForSequenceClassification")(config).eval()
        plain.score.weight.data.normal_()
    plain.save_pretrained(tmp_path)
    tokenizer = tiny_families.llama3_tokenizer()
    tokenizer.save_pretrained(tmp_path)
    answers = tuple(Response(id=text, text=text) for text in ("因为。", "no", "z y " * 20))
    one = Case(prompt=prompt("p", "why?"), responses=answers)
    (line,) = build("models", "classifier", {"path": str(tmp_path)}).score([one])
    for response in answers:
        text = tokenizer.apply_chat_template(tiny_families.turns(one, response), tokenize=False)
        with torch.no_grad():
            logit = plain(**tokenizer(text, return_tensors="pt", add_special_tokens=False)).logits.item()
        assert line.scores[response.id] == pytest.approx(logit, abs=1e-4)
    assert max(line.scores.values()) - min(line.scores.values()) > 0.05


@pytest.mark.field
@pytest.mark.parametrize(
    ("file", "paper"),
    [("cheemsbench_full", "cheems"), ("cheemsbench_top", "cheems"),
     ("mrewardbench_languages", "m-rewardbench"), ("mrewardbench_translation", "m-rewardbench")],
)  # fmt: skip
def test_the_tables_as_files_name_no_other_model(file, paper):
    path = Path(__file__).parents[2] / f"../shared/published/{file}.csv"
    if not path.is_file():
        pytest.skip("the published tables are not here")
    for row in csv.DictReader(path.read_text(encoding="utf-8").splitlines()):
        found = published_model(row["model"])
        assert found is not None, row["model"]
        assert paper in found.papers
        kind = "classifier" if row["type"] == "discriminative" else row["type"]
        assert found.kind == kind, row["model"]
