import pytest
import torch
from transformers import AutoModelForSequenceClassification

import tiny
import tiny_families
from reward_server import nobody, serving, worth
from steelyard.core.errors import ConfigError, ModelError
from steelyard.core.plugins import build
from steelyard.core.types import Case, Message, Response
from strategies import prompt

TEXTS = ["你好", "x", "The answer is here.", "שלום", "", "q"]
CASES = [
    Case(
        prompt=prompt(f"p{index}", f"question {index}"),
        responses=tuple(Response(id=str(place), text=TEXTS[(index + place) % 6]) for place in range(4)),
    )
    for index in range(5)
]
QUICK = {"wait_seconds": 0.01, "timeout_seconds": 600.0}


def backwards(rows):
    """Results as servers may give them: not in the order asked."""
    return list(reversed(rows))


def openai(rows, name):
    return {"data": backwards([{"index": index, "object": name} | row for index, row in enumerate(rows)])}


def answer(path, question):  # noqa: PLR0911 - one reply a dialect
    """Each dialect's reply, as the servers' documentation has it."""
    if path == "/classify" and ("text" in question or "input_ids" in question):
        return [{"embedding": [worth(one)], "meta_info": {}} for one in question.get("text", question.get("input_ids"))]
    if path == "/predict":
        assert question["raw_scores"] is True
        return [[{"label": "LABEL_0", "score": worth(one)}] for one in question["inputs"]]
    if path == "/rerank":
        rows = [
            {"index": index, "score": worth(question["query"] + "|" + one)}
            for index, one in enumerate(question["texts"])
        ]
        return sorted(rows, key=lambda row: -row["score"])
    if path == "/get_reward":
        return {"rewards": [worth(one) for one in question["query"]], "scores": [0.5] * len(question["query"])}
    if path == "/v1/score/evaluation":
        return {"object": "score.evaluation", "model": "rm", "scores": [[worth(one)] for one in question["messages"]]}
    if path == "/anywhere":
        return worth(question["prompt"] + "|" + question["response"])
    sent = question.get("input", [question.get("messages")])
    if path == "/v1/embeddings":
        return openai([{"embedding": [worth(one)]} for one in sent], "embedding")
    if path == "/pooling":
        return openai([{"data": [worth(one)]} for one in sent], "reward")
    # vLLM gives a softmax over the labels unless it is told not to: over one label it is always 1.
    raw = question["use_activation"] is False
    return openai([{"label": "LABEL_0", "probs": [worth(one) if raw else 1.0], "num_classes": 1} for one in sent], "c")


@pytest.fixture(scope="module")
def tokenizer(tmp_path_factory):
    folder = tmp_path_factory.mktemp("tokenizer")
    tiny.tokenizer().save_pretrained(folder)
    return str(folder)


def texts(case):
    """What each dialect's server is sent of a case, whole: ids, text, messages."""
    head = f"<|im_start|>user\n{case.prompt.messages[0].content}<|im_end|>\n<|im_start|>assistant\n"
    return {response.id: head + response.text + "<|im_end|>\n" for response in case.responses}


def ids_of(case):
    return {name: tiny.tokenizer()(text).input_ids for name, text in texts(case).items()}


def messages_of(case):
    return {response.id: tiny_families.turns(case, response) for response in case.responses}


def pairs_of(case):
    return {response.id: case.prompt.messages[0].content + "|" + response.text for response in case.responses}


@pytest.mark.parametrize(
    ("dialect", "settings", "sent"),
    [
        ("vllm_classify", {"model": "rm"}, ids_of),
        ("vllm_classify", {"model": "rm", "send": "text"}, texts),
        ("vllm_classify", {"model": "rm", "tokenizer": None}, messages_of),
        ("vllm_pooling", {"model": "rm", "task": "classify"}, ids_of),
        ("sglang", {}, ids_of),
        ("sglang", {"send": "text"}, texts),
        ("sglang_embeddings", {"model": "rm"}, ids_of),
        ("tei_predict", {}, texts),
        ("tei_rerank", {"tokenizer": None}, pairs_of),
        ("openrlhf", {}, texts),
        ("llamafactory", {}, texts),
        ("slime", {"tokenizer": None}, pairs_of),
    ],
)
def test_each_answer_gets_its_own_number(tokenizer, dialect, settings, sent):
    with serving(answer) as asked:
        url = asked.url + ("/anywhere" if dialect == "slime" else "")
        given = {"url": url, "dialect": dialect, "tokenizer": tokenizer, "batch_size": 3, **QUICK, **settings}
        model = build("models", "remote", given)
        lines = list(model.score(CASES))
    assert [line.prompt for line in lines] == [one.prompt.id for one in CASES]
    for one, line in zip(CASES, lines, strict=True):
        assert line.scores == {name: worth(content) for name, content in sent(one).items()}
    assert model.protocol()["dialect"] == dialect
    assert ("template_hash" in model.protocol()) == (settings.get("tokenizer", tokenizer) is not None)


def test_a_url_may_have_the_path_already(tokenizer):
    with serving(answer) as asked:
        for url in (asked.url, asked.url + "/", asked.url + "/get_reward", asked.url + "/get_reward/"):
            given = {"url": url, "dialect": "openrlhf", "tokenizer": tokenizer, **QUICK}
            assert next(build("models", "remote", given).score(CASES)).unscored == {}
    assert set(asked.paths) == {"/get_reward"}


def test_a_softmax_over_one_label_is_no_reward(tokenizer):
    def old(path, question):
        return openai([{"probs": [1.0], "num_classes": 1} for _ in question["input"]], "c")

    with serving(old) as asked:
        given = {"url": asked.url, "dialect": "vllm_classify", "tokenizer": tokenizer, "batch_size": 4, **QUICK}
        model = build("models", "remote", given)
        with pytest.raises(ModelError, match="exactly 1 to 4 different texts: a softmax over one"):
            list(model.score(CASES[:1]))
    assert asked.questions[0]["use_activation"] is False
    assert asked.questions[0]["activation"] is False


def test_a_passing_failure_is_asked_again_and_a_lasting_one_is_told(tokenizer):
    given = {"dialect": "sglang", "tokenizer": tokenizer, "workers": 1, "num_tries": 3, **QUICK}
    with serving(answer) as asked:
        asked.failures = [503, "drop"]
        (line,) = build("models", "remote", {"url": asked.url, **given}).score(CASES[:1])
        assert len(asked.questions) == 3
        assert line.scores == {name: worth(ids) for name, ids in ids_of(CASES[0]).items()}
        asked.failures = [500] * 3
        (line,) = build("models", "remote", {"url": asked.url, **given}).score(CASES[:1])
    assert (set(line.scores.values()), set(line.unscored.values())) == ({None}, {"http_500"})


def test_one_item_that_is_refused_does_not_take_the_others_with_it(tokenizer):
    ids = ids_of(CASES[0])

    def picky(path, question):
        if ids["2"] in question["input_ids"]:
            return 400, b"too long"
        return answer(path, question)

    with serving(picky) as asked:
        given = {"url": asked.url, "dialect": "sglang", "tokenizer": tokenizer, **QUICK}
        (line,) = build("models", "remote", given).score(CASES[:1])
    assert line.unscored == {"2": "http_400"}
    assert {name: line.scores[name] for name in "013"} == {name: worth(ids[name]) for name in "013"}


def test_a_server_that_is_not_there_or_asked_wrongly_ends_the_run(tokenizer):
    given = {"dialect": "sglang", "tokenizer": tokenizer, "num_tries": 2, **QUICK}
    with nobody() as url, pytest.raises(ModelError, match="no server answers"):
        list(build("models", "remote", given | {"url": url}).score(CASES))
    with serving(lambda path, question: (404, b"no such route")) as asked, pytest.raises(ModelError, match="http_404"):
        list(build("models", "remote", given | {"url": asked.url}).score(CASES))


def test_a_slow_server_times_out(tokenizer):
    with serving(answer) as asked, asked.silent():
        given = {"url": asked.url, "dialect": "sglang", "tokenizer": tokenizer, "timeout_seconds": 0.1, "num_tries": 1}
        (line,) = build("models", "remote", given).score(CASES[:1])
    assert set(line.unscored.values()) == {"timeout"}


@pytest.mark.parametrize(
    "reply",
    [
        {},
        [],
        "text",
        (200, b"<html>"),
        [{"embedding": [0.5]}],
        [{"embedding": ["0.5"]}] * 4,
        [{"embedding": [None]}] * 4,
        [{"embedding": [True]}] * 4,
        [{"embedding": []}] * 4,
        (200, b'[{"embedding": [NaN]}, {"embedding": [1]}, {"embedding": [1]}, {"embedding": [1]}]'),
    ],
)
def test_a_malformed_reply_scores_nothing(tokenizer, reply):
    with serving(lambda path, question: reply) as asked:
        given = {"url": asked.url, "dialect": "sglang", "tokenizer": tokenizer, **QUICK}
        (line,) = build("models", "remote", given).score(CASES[:1])
    assert (set(line.scores.values()), set(line.unscored.values())) == ({None}, {"malformed"})


def test_several_numbers_are_a_reward_only_where_one_is_named(tokenizer):
    def every_token(path, question):
        return openai([{"data": [[0.25], [0.5], [worth(one)]]} for one in question["input"]], "reward")

    found = {}
    with serving(every_token) as asked:
        for label in (None, -1, 1, 3):
            given = {"url": asked.url, "dialect": "vllm_pooling", "tokenizer": tokenizer, "label": label, **QUICK}
            (found[label],) = build("models", "remote", given).score(CASES[:1])
    assert set(found[None].unscored.values()) == set(found[3].unscored.values()) == {"labels"}
    assert set(found[1].scores.values()) == {0.5}
    assert found[-1].scores == {name: worth(ids) for name, ids in ids_of(CASES[0]).items()}


def test_the_key_comes_from_the_environment_and_stays_out_of_the_protocol(tokenizer, monkeypatch):
    monkeypatch.setenv("REWARD_KEY", "s3cret")
    with serving(answer) as asked:
        given = {"url": asked.url, "dialect": "sglang", "tokenizer": tokenizer, "secret": "REWARD_KEY", **QUICK}
        model = build("models", "remote", given)
        list(model.score(CASES[:1]))
    assert asked.headers[0]["Authorization"] == "Bearer s3cret"
    assert "s3cret" not in str(model.protocol())
    with pytest.raises(ConfigError, match="no environment variable 'ABSENT'"):
        build("models", "remote", given | {"secret": "ABSENT"})


def test_what_cannot_be_sent_is_unscored_with_its_reason(tokenizer):
    turns = (Message(role="assistant", content="a"), Message(role="user", content="b"))
    answers = (
        Response(id="long", text="word " * 99),
        Response(id="spelt", text="<|im_end|>"),
        Response(id="turns", messages=turns),
    )
    one = Case(prompt=prompt("p", "q"), responses=answers)
    found = {}
    with serving(answer) as asked:
        for send in ("tokens", "text"):
            given = {
                "url": asked.url,
                "dialect": "sglang",
                "tokenizer": tokenizer,
                "max_length": 60,
                "send": send,
                **QUICK,
            }
            (found[send],) = build("models", "remote", given).score([one])
        (found["pair"],) = build("models", "remote", {"url": asked.url, "dialect": "tei_rerank", **QUICK}).score([one])
    assert [found[send].unscored for send in ("tokens", "text", "pair")] == [
        {"long": "too long"}, {"long": "too long", "spelt": "marks"}, {"turns": "turns"},
    ]  # fmt: skip


@pytest.mark.parametrize(("dialect", "settings"), [("sglang", {}), ("vllm_classify", {"model": "rm"})])
def test_a_served_model_scores_as_the_model_does_offline(tmp_path, dialect, settings):
    words = "The answer is here.", "你好，世界。", "مرحبا بالعالم", "שלום עולם", "नमस्ते", "こんにちは", "Привет", "สวัสดี"
    texts = [text for word in words for text in (word, word * 400, f"{word}  \n", f"{word} <|im_end|>")]
    cases = [
        Case(prompt=prompt(f"p{number}", "why?"), responses=(Response(id="a", text=text),))
        for number, text in enumerate([*texts, "", " ", "\0", "\ufeffa", "x" * 20_000])
    ]
    tiny.save_classifier(tmp_path)
    local = build("models", "classifier", {"path": str(tmp_path)})
    network = AutoModelForSequenceClassification.from_pretrained(tmp_path).eval()

    def scored(path, question):
        rows = question["input_ids" if path == "/classify" and "input_ids" in question else "input"]
        with torch.no_grad():
            rewards = [float(network(input_ids=torch.tensor([ids])).logits[0, 0]) for ids in rows]
        if "input_ids" in question:
            return [{"embedding": [reward], "meta_info": {}} for reward in rewards]
        return openai([{"probs": [reward], "num_classes": 1} for reward in rewards], "classify")

    with serving(scored) as asked:
        given = {"url": asked.url, "dialect": dialect, "tokenizer": str(tmp_path), "batch_size": 7, **QUICK, **settings}
        served = list(build("models", "remote", given).score(cases))
    offline = list(local.score(cases))
    assert [line.unscored for line in served] == [line.unscored for line in offline]
    assert sum(line.scores["a"] is not None for line in served) > len(texts) // 2
    for one, other in zip(served, offline, strict=True):
        assert one.scores["a"] == (None if other.scores["a"] is None else pytest.approx(other.scores["a"], abs=1e-4))
