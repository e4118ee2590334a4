import numpy as np
import pytest

import tiny
import tiny_families
from steelyard.core.errors import ConfigError, ModelError
from steelyard.core.plugins import build
from steelyard.core.types import Case, Message, Response
from strategies import prompt

WORDS = ["你好，世界。", "The answer is here.", "שלום", "question: What is it?", "नमस्ते" * 4]
CASES = [
    Case(
        prompt=prompt(f"p{index}", f"question {index}: What is it?"),
        responses=tuple(Response(id=str(place), text=WORDS[(index + place) % 5] * (place + 1)) for place in range(3)),
    )
    for index in range(3)
]


@pytest.fixture(scope="module")
def folders(tmp_path_factory):
    root = tmp_path_factory.mktemp("policies")
    return [tiny.save_base(root / str(seed), seed=seed) for seed in (1, 2)]


def plain_logs(folder, ids, start):
    """Log-probabilities of the tokens from a place on, one row, in float64."""
    import torch
    from transformers import AutoModelForCausalLM

    model = AutoModelForCausalLM.from_pretrained(folder).double().eval()
    with torch.no_grad():
        logits = model(torch.tensor([ids])).logits[0].numpy()
    logs = logits - logits.max(1, keepdims=True)
    logs = logs - np.log(np.exp(logs).sum(1, keepdims=True))
    return np.array([logs[place - 1, ids[place]] for place in range(start, len(ids))])


def chat(one, response):
    """Ids of the whole conversation, and how many of them stand before the answer's text."""
    tokenizer = tiny.tokenizer()
    head = f"<|im_start|>user\n{one.prompt.messages[0].content}<|im_end|>\n<|im_start|>assistant\n"
    return tokenizer(head + response.text + "<|im_end|>\n").input_ids, len(tokenizer(head).input_ids)


def found(folders, cases=CASES, **settings):
    model = build("models", "implicit", {"path": folders[0], **settings})
    return {(line.prompt, name): score for line in model.score(cases) for name, score in line.scores.items()}


RULES = {
    "sum": lambda logs: logs.sum(),
    "avg": lambda logs: logs.mean(),
    "norm": lambda logs: -np.sqrt((logs**2).sum()),
}


@pytest.mark.parametrize("reduction", ["sum", "avg", "norm"])
def test_without_a_reference_each_rule_is_that_of_a_plain_forward(folders, reduction):
    own = found(folders, reduction=reduction)
    for one in CASES:
        for response in one.responses:
            expected = RULES[reduction](plain_logs(folders[0], *chat(one, response)))
            assert own[one.prompt.id, response.id] == pytest.approx(expected, abs=2e-4)


@pytest.mark.parametrize(("reduction", "beta"), [("sum", 1.0), ("avg", 1.0), (None, 0.1)])
def test_with_a_reference_it_is_the_difference(folders, reduction, beta):
    own = found(folders, reference=folders[1], reduction=reduction, beta=beta)
    for one in CASES:
        for response in one.responses:
            policy, reference = (plain_logs(folder, *chat(one, response)) for folder in folders)
            expected = beta * (RULES[reduction or "sum"](policy) - RULES[reduction or "sum"](reference))
            assert own[one.prompt.id, response.id] == pytest.approx(expected, abs=2e-4)


def test_the_published_rule_adds_marks_and_counts_the_header(folders):
    own = found(folders, reference=folders[1], protocol="rewardbench")
    tokenizer = tiny.tokenizer()
    for one in CASES:
        for response in one.responses:
            ids, _ = chat(one, response)
            ids = [tokenizer.bos_token_id, *ids, tokenizer.eos_token_id]
            asked = f"<|im_start|>user\n{one.prompt.messages[0].content}<|im_end|>\n"
            start = 1 + len(tokenizer(asked).input_ids)
            expected = plain_logs(folders[0], ids, start).sum() - plain_logs(folders[1], ids, start).sum()
            assert own[one.prompt.id, response.id] == pytest.approx(expected, abs=3e-4)


def test_the_published_rule_cuts_where_the_other_refuses(folders):
    answers = (Response(id="a", text="so " * 60), Response(id="b", text="x"))
    long = [Case(prompt=prompt("p", "word " * 60), responses=answers)]
    tokenizer = tiny.tokenizer()
    (ids, _), (short, _) = (chat(long[0], response) for response in answers)
    assert len(ids) > len(short) > 200
    (line,) = build("models", "implicit", {"path": folders[0], "max_length": len(short)}).score(long)
    assert line.unscored == {"a": "too long"}
    start = len(tokenizer("<|im_start|>user\n" + "word " * 60 + "<|im_end|>\n").input_ids)
    answer = [*ids[start:], tokenizer.eos_token_id]
    cut = ids[start - 128 : start] + answer[: 200 - 128]
    own = found(folders, long, max_length=200, protocol="rewardbench", reduction="sum")
    assert own["p", "a"] == pytest.approx(plain_logs(folders[0], cut, 128).sum(), abs=1e-3)


def test_scores_do_not_depend_on_batch_or_order(folders):
    reference = found(folders, reference=folders[1], batch_size=1)
    assert np.std(list(reference.values())) > 0.1
    for settings in ({"batch_size": 9}, {"tokens_per_forward": 150}):
        for order in (CASES, CASES[::-1]):
            own = found(folders, order, reference=folders[1], **settings)
            assert max(abs(own[key] - reference[key]) for key in reference) < 1e-4


def test_an_answer_that_quotes_the_prompt_is_scored_whole(folders):
    quoting = CASES[0].prompt.messages[0].content
    one = Case(prompt=CASES[0].prompt, responses=(Response(id="a", text=quoting),))
    ids, start = chat(one, one.responses[0])
    assert found(folders, [one], reduction="sum")["p0", "a"] == pytest.approx(
        plain_logs(folders[0], ids, start).sum(), abs=2e-4
    )


def test_answers_that_cannot_be_scored_say_why(folders):
    turns = (Message(role="assistant", content="a"), Message(role="user", content="b"))
    one = Case(
        prompt=prompt("p"),
        responses=(Response(id="t", messages=turns), Response(id="e", text=""), Response(id="x", text="x")),
    )
    (line,) = build("models", "implicit", {"path": folders[0]}).score([one])
    assert line.unscored == {"t": "turns"}  # an empty answer still has its EOS token
    (bare,) = build("models", "implicit", {"path": folders[0], "chat_template": bare_template(folders)}).score([one])
    assert bare.unscored == {"t": "turns", "e": "empty"}


def bare_template(folders):
    from pathlib import Path

    path = Path(folders[0]).parent / "bare.jinja"
    path.write_text("{% for message in messages %}{{ message.role }}: {{ message.content }}{% endfor %}")
    return str(path)


ARCHITECTURES = {
    "Llama": {}, "Mistral": {"sliding_window": None}, "Qwen2": {},
    "StableLm": {"use_qkv_bias": True, "partial_rotary_factor": 0.25},
}  # fmt: skip


@pytest.mark.parametrize("name", ARCHITECTURES)
def test_each_architecture_of_the_published_policies(tmp_path, name):
    import torch
    import transformers

    config = getattr(transformers, f"{name}Config")(
        vocab_size=400, hidden_size=32, intermediate_size=48, num_hidden_layers=2, num_attention_heads=2,
        num_key_value_heads=2, max_position_embeddings=512, tie_word_embeddings=False, **ARCHITECTURES[name],
    )  # fmt: skip
    with torch.random.fork_rng():
        torch.manual_seed(3)
        getattr(transformers, f"{name}ForCausalLM")(config).save_pretrained(tmp_path)
    tiny.tokenizer().save_pretrained(tmp_path)
    own = found([str(tmp_path)], CASES[:1], reduction="sum")
    for response in CASES[0].responses:
        expected = plain_logs(str(tmp_path), *chat(CASES[0], response)).sum()
        assert own["p0", response.id] == pytest.approx(expected, abs=3e-4)


def test_contradicting_settings_and_other_models_are_refused(folders, tmp_path):
    with pytest.raises(ConfigError, match="reduction='norm' with a reference"):
        build("models", "implicit", {"path": folders[0], "reference": folders[1], "reduction": "norm"})
    with pytest.raises(ConfigError, match=r"beta=0\.0"):
        build("models", "implicit", {"path": folders[0], "beta": 0})
    with pytest.raises(ModelError, match="lacks weights: lm_head"):
        build("models", "implicit", {"path": tiny_families.save_grm(tmp_path)})


def test_the_protocol_names_the_rule_and_the_reference(folders):
    own = build("models", "implicit", {"path": folders[0]}).protocol()
    assert (own["reference"], own["reduction"], own["protocol"]) == (None, "norm", "template")
    against = build("models", "implicit", {"path": folders[0], "reference": folders[1]}).protocol()
    assert (against["reference"], against["reduction"]) == ("2", "sum")
