import json
import logging
import re
from types import SimpleNamespace

import msgspec
import pytest
import torch

import tiny
from steelyard.core.plugins import build
from steelyard.core.types import Case, Response
from steelyard.io.cases import write_cases
from steelyard.networks.settings import read_manifest
from steelyard.stages.evaluate import Config as Measuring
from steelyard.stages.evaluate import evaluate
from steelyard.stages.train import Config, train
from steelyard.training.saved_model import pad_id, to_storage_type, with_former_names
from strategies import case

ANSWERS = (Response(id="g", text="Yes, here it is."), Response(id="b", text="no"), Response(id="u", text="תשובה"))


def made(number, name, **own):
    return [
        Case(
            prompt=case(id=f"{name}{index}", text=f"question {name} {index}", **own).prompt,
            responses=ANSWERS,
            ranking=(("g",), ("b",)),
        )
        for index in range(number)
    ]


@pytest.fixture
def given(tmp_path):
    write_cases(tmp_path / "train | file.jsonl", made(6, "p", language="he"))
    write_cases(tmp_path / "held.jsonl", made(4, "q", category=("数|学",), language="he"))
    write_cases(tmp_path / "ref.jsonl", made(3, "r"))
    return tmp_path / "train | file.jsonl", tmp_path / "held.jsonl", tiny.save_base(tmp_path / "base")


def scores(folder, cases):
    lines = build("models", "classifier", {"path": str(folder)}).score(cases)
    return [reward for line in lines for reward in line.scores.values()]


FAST = Config(epochs=2, learning_rate=1e-3, batch_size=3)


def test_the_manifest_tells_how_rewards_lie_on_a_named_set(given, tmp_path):
    """Mean and spread, recomputed by hand from the saved folder's scores of every answer of the file."""
    file, held_out, base = given
    train(file, tmp_path / "out", FAST, model=base, held_out=held_out, reward_reference=tmp_path / "ref.jsonl")
    reference = read_manifest(tmp_path / "out").reference
    rewards = scores(tmp_path / "out", made(3, "r"))
    mean = sum(rewards) / 9
    assert (reference.name, reference.num_prompts, reference.num_rewards) == ("ref.jsonl", 3, 9)
    assert reference.mean == pytest.approx(mean, abs=1e-6)
    assert reference.spread == pytest.approx((sum((one - mean) ** 2 for one in rewards) / 9) ** 0.5, abs=1e-6)


def test_standardised_rewards_have_a_spread_of_one_in_every_engine(given, tmp_path):
    file, held_out, base = given
    plain = train(file, tmp_path / "plain", FAST, model=base, held_out=held_out)
    config = Config(epochs=2, learning_rate=1e-3, batch_size=3, calibrate_rewards="standardise")
    run = train(file, tmp_path / "out", config, model=base, held_out=held_out)
    manifest = read_manifest(tmp_path / "out")
    before, after = (scores(tmp_path / name, made(4, "q")) for name in ("plain", "out"))
    assert after == pytest.approx([manifest.calibration.scale * reward for reward in before], rel=1e-4, abs=1e-5)
    # The held-out set has the two answers of each pair: the third stands in none.
    paired = [reward for place, reward in enumerate(after) if place % 3 < 2]
    mean = sum(paired) / 8
    assert (sum((one - mean) ** 2 for one in paired) / 8) ** 0.5 == pytest.approx(1, abs=1e-4)
    assert manifest.calibration.shift == pytest.approx(-mean, abs=1e-4)
    assert run.summary.held_out == plain.summary.held_out
    assert read_manifest(tmp_path / "plain").calibration is None


@pytest.mark.parametrize("dtype", ["float32", "bfloat16"])
def test_the_card_can_be_followed_word_by_word(given, tmp_path, dtype):
    """The code in the model card is run, and gives the reward that our own scorer gives."""
    file, held_out, base = given
    train(file, tmp_path / "out", msgspec.structs.replace(FAST, dtype=dtype), model=base, held_out=held_out)
    text = (tmp_path / "out" / "README.md").read_text(encoding="utf-8")
    assert "train \\| file\\.jsonl" in text
    assert "| 数\\|学 |" in text
    (code,) = re.findall(r"```python\n(.*?)```", text, re.DOTALL)
    told = {}
    exec(code.replace('"PATH"', repr(str(tmp_path / "out"))), told)
    one = Case(
        prompt=case(id="x", text="What is a steelyard?").prompt, responses=(Response(id="a", text="A hand scale."),)
    )
    # In bfloat16 the order of sums moves a reward; a head in bfloat16 would move it by a hundredth.
    apart = 1e-5 if dtype == "float32" else 2e-3
    assert told["reward"] == pytest.approx(scores(tmp_path / "out", [one])[0], abs=apart)
    assert ("Against float32 the rewards of" in text) is (dtype == "bfloat16")


def test_the_learned_parameter_of_ties_is_in_the_manifest(given, tmp_path):
    config = Config(epochs=1, loss="davidson", batch_size=3)
    train(given[0], tmp_path / "out", config, model=given[2])
    manifest = read_manifest(tmp_path / "out")
    assert manifest.loss == "davidson"
    assert set(manifest.tie) == {"log_strength"}
    assert manifest.reference.name == "trained on: train | file.jsonl"


def test_the_folder_is_what_serving_engines_expect(given, tmp_path):
    """vLLM takes a ``*ForSequenceClassification`` as a classifier; one label of a regression is given as it is.

    With a padding token in the configuration that also ends the text, engines that look for the last token read one
    too early: there must be none. No code of ours is needed to load it, and every weight is in safetensors.
    """
    train(given[0], tmp_path / "out", FAST, model=given[2])
    config = json.loads((tmp_path / "out" / "config.json").read_text())
    (architecture,) = config["architectures"]
    assert architecture == "Qwen2ForSequenceClassification"
    assert (config["problem_type"], list(config["id2label"])) == ("regression", ["0"])
    assert "auto_map" not in config
    from safetensors import safe_open

    with safe_open(tmp_path / "out" / "model.safetensors", framework="pt") as weights:
        names = set(weights.keys())
        assert weights.get_tensor("score.weight").dtype == torch.float32
    assert not any("lm_head" in name or name == "tie" for name in names)
    assert (tmp_path / "out" / "chat_template.jinja").is_file() or "chat_template" in json.loads(
        (tmp_path / "out" / "tokenizer_config.json").read_text()
    )


@pytest.mark.parametrize("over_length", ["left", "right", "unscored"])
def test_other_programs_truncate_where_we_do(given, tmp_path, caplog, over_length):
    """The base limits to 7 tokens, and cuts on the left: neither holds for the model that is trained from it."""
    from transformers import AutoTokenizer

    base = tiny.save_base(tmp_path / "limited", model_max_length=7, truncation_side="left")
    config = msgspec.structs.replace(FAST, max_length=60, over_length=over_length)
    train(given[0], tmp_path / "out", config, model=base)
    settings = json.loads((tmp_path / "out" / "tokenizer_config.json").read_text())
    assert settings["model_max_length"] == read_manifest(tmp_path / "out").rendering.max_length == 60
    plain = AutoTokenizer.from_pretrained(tmp_path / "out")
    long = Case(prompt=case(id="x", text="question " * 40).prompt, responses=ANSWERS[:1])
    turns = [{"role": "user", "content": "question " * 40}, {"role": "assistant", "content": ANSWERS[0].text}]
    text = plain.apply_chat_template(turns, tokenize=False)
    monitored = logging.getLogger("transformers")
    monitored.addHandler(caplog.handler)
    try:
        (answer,) = build("models", "classifier", {"path": str(tmp_path / "out")}).scorer.encoder.encode(long)
    finally:
        monitored.removeHandler(caplog.handler)
    assert "maximum sequence length" not in caplog.text
    assert answer.is_over_length
    if over_length != "unscored":
        assert tuple(plain(text, truncation=True).input_ids) == answer.row
    assert len(plain(text, truncation=True).input_ids) == 60


def test_an_evaluation_leaves_the_model_folder_as_it_is(given, tmp_path):
    train(given[0], tmp_path / "out", FAST, model=given[2], held_out=given[1])

    def contents():
        paths = sorted((tmp_path / "out").rglob("*"))
        return [(str(path), path.stat().st_mtime_ns, path.is_file() and path.read_bytes()) for path in paths]

    before = contents()
    evaluate([given[1]], tmp_path / "evaluated", Measuring(num_resamples=50), model=str(tmp_path / "out"))
    assert contents() == before


TEXTS = (Response(id="g", text="Yes, here."), Response(id="b", text="no"), Response(id="u", text="?"))


def test_counts_and_summary_by_hand(tmp_path):
    ranked = Case(prompt=case(id="p", text="one").prompt, responses=TEXTS, ranking=(("g",), ("b",)))
    twice = Case(prompt=case(id="q", text="two").prompt, responses=TEXTS, ranking=(("g",), ("b", "u")))
    write_cases(tmp_path / "train.jsonl", [ranked, twice, case(id="r", text="three")])
    base = tiny.save_base(tmp_path / "base")
    run = train(tmp_path / "train.jsonl", tmp_path / "out", Config(epochs=3, batch_size=1), model=base)
    assert (run.counts.num_in, run.counts.num_used) == (3, 2)
    assert run.counts.dropped == {"no comparable pair": 1}
    assert run.counts.noted["responses in no pair"] == 1 + len(case(id="r", text="three").responses)
    numbers = ("num_prompts", "num_responses", "num_pairs", "num_steps", "last_step", "share_of_pairs_kept")
    assert [getattr(run.summary, name) for name in numbers] == [2, 5, 3, 6, 6, 1.0]
    lines = [json.loads(line) for line in (tmp_path / "out" / "curve.jsonl").read_text().splitlines()]
    assert [line["step"] for line in lines] == [1, 2, 3, 4, 5, 6]
    assert run.summary.final_loss == lines[-1]["loss"]


def test_a_padding_token_that_ends_the_text_is_no_padding_token():
    assert pad_id(tiny.tokenizer()) == 0
    assert pad_id(tiny.tokenizer(pad_token="</s>")) is None
    assert pad_id(tiny.tokenizer(pad_token=None)) is None


def test_the_head_is_stored_in_float32(tmp_path):
    import torch

    from steelyard.networks.loading import load_network

    network, _ = load_network(tiny.save_classifier(tmp_path / "m"), dtype="float32")
    to_storage_type(network, "bfloat16")
    assert network.head.weight.dtype == torch.float32
    assert network.backbone.norm.weight.dtype == torch.bfloat16


def test_the_folder_has_the_names_that_transformers_4_reads(given, tmp_path):
    """Without them it takes 10,000 for the base of the positions, and fails at the list of special marks."""
    file, _, base = given
    path = tmp_path / "base" / "config.json"
    positions = {"rope_theta": 50.0, "rope_type": "linear", "factor": 2.0}
    path.write_text(json.dumps(json.loads(path.read_text("utf-8")) | {"rope_parameters": positions}), "utf-8")
    train(file, tmp_path / "out", FAST, model=base)
    config = json.loads((tmp_path / "out" / "config.json").read_text("utf-8"))
    assert config["rope_parameters"] == positions
    assert (config["rope_theta"], config["rope_scaling"]) == (50.0, {"rope_type": "linear", "factor": 2.0})
    assert config["torch_dtype"] == config["dtype"] == "float32"
    marks = json.loads((tmp_path / "out" / "tokenizer_config.json").read_text("utf-8"))
    assert marks["additional_special_tokens"] == ["<|im_start|>", "<|im_end|>"]
    assert "extra_special_tokens" not in marks
    assert marks["tokenizer_class"] != "TokenizersBackend"


def test_positions_by_kind_of_layer_have_former_names():
    from transformers import Gemma3TextConfig

    full, local = {"rope_theta": 7.0, "rope_type": "linear", "factor": 8.0}, {"rope_theta": 3.0, "rope_type": "default"}
    positions = {"full_attention": full, "sliding_attention": local}
    content = Gemma3TextConfig(num_hidden_layers=6, rope_parameters=positions).to_dict()
    assert with_former_names(content, Gemma3TextConfig) == content | {
        "rope_theta": 7.0,
        "rope_scaling": {"rope_type": "linear", "factor": 8.0},
        "rope_local_base_freq": 3.0,
    }


def test_names_that_would_be_read_differently_are_left_out():
    keeping_all = SimpleNamespace(from_dict=lambda read: SimpleNamespace(to_dict=lambda: read))
    content = {"rope_parameters": {"rope_theta": 9.0, "rope_type": "default"}}
    assert with_former_names(content, keeping_all) == content
