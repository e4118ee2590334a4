"""Servers that score tokens: a real causal language model behind both documented protocols."""

import math

import pytest
import torch
from transformers import AutoModelForCausalLM, AutoTokenizer

import tiny
from chat_server import request
from reward_server import serving
from steelyard.core.errors import ConfigError, ModelError
from steelyard.core.plugins import build

PROMPTED = tiny.CHATML + "{% if add_generation_prompt %}<|im_start|>assistant\n{% endif %}"
LABELS = ("A", "B", "C")


@pytest.fixture(scope="module")
def folder(tmp_path_factory):
    return tiny.save_base(tmp_path_factory.mktemp("models") / "judge-7b", template=PROMPTED)


class Engine:
    """What vLLM and SGLang document, computed by a real model; ``limit`` truncates the prompt as vLLM does."""

    def __init__(self, folder, *, limit=10**6, counts=True):
        self.tokenizer = AutoTokenizer.from_pretrained(folder)
        self.model = AutoModelForCausalLM.from_pretrained(folder).eval()
        self.limit, self.counts = limit, counts

    def __call__(self, path, body):
        if path == "/tokenize":
            return self.tokenize(body)
        ids = (body["query"] + body["items"][0])[: self.limit]
        assert body["apply_softmax"] is False
        with torch.inference_mode():
            odds = self.model(torch.tensor([ids])).logits[0, -1].float().softmax(-1)
        labels = [float(odds[label]) for label in body["label_token_ids"]]
        usage = {"usage": {"prompt_tokens": len(ids), "total_tokens": len(ids)} if self.counts else None}
        if path == "/generative_scoring":
            return {
                "object": "list",
                "data": [{"index": 0, "object": "score", "score": labels[0]}],
                "model": "m",
            } | usage
        assert path == "/v1/score"
        return {"scores": [labels], "model": "m", "object": "scoring"} | usage

    def tokenize(self, body):
        if "messages" in body:
            ids = self.tokenizer.apply_chat_template(body["messages"], add_generation_prompt=True, return_dict=False)
        else:
            ids = self.tokenizer(body["prompt"], add_special_tokens=body["add_special_tokens"]).input_ids
        return {"tokens": ids, "count": len(ids), "max_model_len": self.limit}


def chat(served, **settings):
    return build(
        "chats", "token_probabilities", {"base_url": served.url + "/v1", "model": "m", "num_tries": 1, **settings}
    )


def asked(**fields):
    return request(**{"text": "哪个更好？", "max_tokens": 1, "labels": LABELS, **fields})


@pytest.mark.parametrize("settings", [{}, {"tokenizer": True}, {"server": "sglang", "tokenizer": True}])
def test_the_probabilities_are_those_of_the_model_itself(folder, settings):
    settings = {**settings, "tokenizer": folder} if "tokenizer" in settings else settings
    with serving(Engine(folder)) as served:
        (reply,) = chat(served, **settings).ask([asked()])
    (local,) = build("chats", "local", {"path": folder, "dtype": "float32"}).ask([asked(alternatives=400)])
    expected = {one.token: one.logprob for one in local.first_token if one.token in LABELS}
    assert {one.token: one.logprob for one in reply.first_token} == pytest.approx(expected, abs=1e-4)
    assert reply.text == max(expected, key=expected.get)
    assert (reply.prompt_tokens % local.prompt_tokens, reply.reply_tokens, reply.failure) == (0, 0, None)
    assert len(served.paths) == {"vllm": 3 if settings else 1 + 3 + 3, "sglang": 1}[settings.get("server", "vllm")]


def test_labels_are_tokenised_once(folder):
    with serving(Engine(folder)) as served:
        own = chat(served, workers=1)
        list(own.ask([asked(id="a"), asked(id="b", text="数学")]))
        assert sum("prompt" in question for question in served.questions) == len(LABELS)


def test_a_server_that_truncates_is_refused(folder):
    with serving(Engine(folder, limit=8)) as served, pytest.raises(ModelError, match=r"read 8 of \d+ tokens"):
        list(chat(served, tokenizer=folder).ask([asked()]))


def test_a_prompt_over_the_servers_limit_is_a_failure_of_its_own(folder):
    with serving(Engine(folder, limit=40)) as served:
        long, short = asked(id="long", text="为什么？" * 100), asked(id="short", text="a")
        replies = {reply.request: reply for reply in chat(served).ask([long, short])}
    assert replies["long"].failure == "failed"
    assert replies["long"].detail.startswith("too_long: ")
    assert replies["short"].failure is None


def test_a_server_that_does_not_count_is_refused(folder):
    with serving(Engine(folder, counts=False)) as served, pytest.raises(ModelError, match="may truncate"):
        list(chat(served, tokenizer=folder).ask([asked()]))


@pytest.mark.parametrize("score", [-0.2, 1.5, float("nan"), -3.7])
def test_what_is_no_probability_is_no_verdict(folder, score):
    engine = Engine(folder)

    def odd(path, body):
        found = engine(path, body)
        return {**found, "data": [{"score": score}]} if "data" in found else found

    with serving(odd) as served:
        (reply,) = chat(served).ask([asked()])
    assert (reply.failure, reply.text, reply.first_token) == ("failed", None, None)
    assert reply.detail.startswith("malformed: ")


COUNTED = {"usage": {"prompt_tokens": 900}}


@pytest.mark.parametrize("body", [[], COUNTED, COUNTED | {"data": []}, {"data": "no"}, COUNTED | {"scores": [[0.5]]}])
def test_a_body_of_another_shape_is_a_failure(folder, body):
    with serving(lambda path, question: body) as served:
        (reply,) = chat(served, tokenizer=folder).ask([asked()])
    assert (reply.failure, reply.detail.partition(":")[0]) == ("failed", "malformed")


def test_a_question_without_labels_is_told_what_to_do(folder):
    with serving(Engine(folder)) as served:
        (reply,) = chat(served).ask([asked(labels=())])
    assert "judge.form=first_token" in reply.detail


def test_a_label_of_several_tokens_is_refused(folder):
    with serving(Engine(folder)) as served, pytest.raises(ModelError, match="is 5 tokens of this model"):
        list(chat(served).ask([asked(labels=("A", "nope!"))]))


def test_sglang_needs_a_tokenizer():
    with pytest.raises(ConfigError, match="tokenizer"):
        build("chats", "token_probabilities", {"base_url": "http://localhost:1/v1", "model": "m", "server": "sglang"})


def test_a_missing_endpoint_ends_the_run(folder):
    with serving(lambda path, body: (404, b"no such path")) as served, pytest.raises(ModelError, match="404"):
        list(chat(served, tokenizer=folder).ask([asked()]))


def test_a_probability_of_zero_is_left_out(folder):
    engine = Engine(folder)

    def certain(path, body):
        found = engine(path, body)
        return {**found, "scores": [[1.0, 0.0, 0.0]]}

    with serving(certain) as served:
        (reply,) = chat(served, server="sglang", tokenizer=folder).ask([asked()])
    assert [(one.token, math.exp(one.logprob)) for one in reply.first_token] == [("A", 1.0)]
