import numpy as np
import pytest

import tiny
from steelyard.core.errors import EvidenceError, ModelError
from steelyard.core.plugins import build
from steelyard.core.types import Case, Response
from steelyard.networks.conversation import Rendering
from steelyard.networks.settings import Manifest, write_manifest
from strategies import case

WORDS = ["你好", "world", "שלום", "x", "answer is here", "नमस्ते दुनिया", "一二三四五六七八九十"]


def many(number=8):
    return [
        Case(
            prompt=case(id=f"p{index}", text=f"question {index}").prompt,
            responses=tuple(
                Response(
                    id=str(place), text=" ".join(WORDS[(index + step) % 7] for step in range(1 + (index * place) % 9))
                )
                for place in range(4)
            ),
        )
        for index in range(number)
    ]


@pytest.fixture(scope="module")
def path(tmp_path_factory):
    return tiny.save_classifier(tmp_path_factory.mktemp("m"))


def rewards(path, cases, **settings):
    model = build("models", "classifier", {"path": path, **settings})
    lines = list(model.score(cases))
    assert [line.prompt for line in lines] == [one.prompt.id for one in cases]
    return {(line.prompt, name): score for line in lines for name, score in line.scores.items()}


def test_scores_do_not_depend_on_batch_padding_or_order(path):
    cases = many()
    reference = rewards(path, cases, batch_size=1)
    assert np.std(list(reference.values())) > 0.1
    for batch_size in (1, 8, 32):
        for padding in ("left", "right"):
            for order in (cases, cases[::-1]):
                found = rewards(path, order, batch_size=batch_size, padding=padding)
                assert found.keys() == reference.keys()
                assert max(abs(found[key] - reference[key]) for key in reference) < 1e-5


def test_plain_transformers_scores_the_same_folder_the_same(path):
    import torch
    from transformers import AutoModelForSequenceClassification, AutoTokenizer

    cases = many(3)
    plain, tokenizer = AutoModelForSequenceClassification.from_pretrained(path), AutoTokenizer.from_pretrained(path)
    found = rewards(path, cases)
    for one in cases:
        for response in one.responses:
            turns = [
                {"role": "user", "content": one.prompt.messages[0].content},
                {"role": "assistant", "content": response.text},
            ]
            text = tokenizer.apply_chat_template(turns, tokenize=False)
            with torch.no_grad():
                logit = plain(**tokenizer(text, return_tensors="pt", add_special_tokens=False)).logits.item()
            assert found[one.prompt.id, response.id] == pytest.approx(logit, abs=1e-5)


def test_an_untrained_head_is_refused(tmp_path):
    with pytest.raises(ModelError, match="has no trained reward head: its scores would be random"):
        build("models", "classifier", {"path": tiny.save_base(tmp_path / "base")})


def test_a_head_under_another_name_is_named_in_the_refusal(tmp_path):
    from safetensors.torch import load_file, save_file

    path = tiny.save_base(tmp_path / "base")
    weights = load_file(tmp_path / "base" / "model.safetensors")
    weights["v_head.summary.weight"] = weights["model.norm.weight"].clone()
    save_file(weights, tmp_path / "base" / "model.safetensors", metadata={"format": "pt"})
    with pytest.raises(
        ModelError, match=r"head named 'score', and v_head\.summary\.weight would not be read"
    ) as caught:
        build("models", "classifier", {"path": path})
    assert "name the kind of model that reads this head" in str(caught.value.do)


def test_a_folder_whose_training_did_not_finish_is_refused(tmp_path):
    path = tiny.save_classifier(tmp_path / "m")
    (tmp_path / "m" / "started.json").write_text("{}")
    with pytest.raises(ModelError, match="its training did not finish"):
        build("models", "classifier", {"path": path})


def test_a_model_without_a_template_is_refused_unless_one_is_named(tmp_path):
    path = tiny.save_classifier(tmp_path / "m", template=None)
    with pytest.raises(ModelError, match="no chat template"):
        build("models", "classifier", {"path": path})
    assert len(rewards(path, many(1), chat_template="plain")) == 4


def test_an_answer_over_the_limit_is_cut_only_by_name(path):
    long = Case(prompt=case().prompt, responses=(Response(id="a", text="word " * 200), Response(id="b", text="x")))
    model = build("models", "classifier", {"path": path, "max_length": 60})
    line = next(model.score([long]))
    assert (line.scores["a"], line.unscored, line.cut) == (None, {"a": "too long"}, ())
    assert line.scores["b"] is not None
    cut = next(build("models", "classifier", {"path": path, "max_length": 60, "over_length": "left"}).score([long]))
    assert cut.scores["a"] is not None
    assert (cut.unscored, cut.cut) == ({}, ("a",))
    refusing = build("models", "classifier", {"path": path, "max_length": 60, "over_length": "refuse"})
    with pytest.raises(EvidenceError, match=r"response 'a' has [\d,]+ tokens with its prompt, over the limit of 60"):
        next(refusing.score([long]))


def test_two_answers_that_differ_only_beyond_the_limit_are_never_compared(path):
    answers = (Response(id="a", text="word " * 200 + "yes"), Response(id="b", text="word " * 200 + "no"))
    model = build("models", "classifier", {"path": path, "max_length": 60})
    assert next(model.score([Case(prompt=case().prompt, responses=answers)])).unscored == dict.fromkeys(
        "ab", "too long"
    )


def test_another_protocol_than_the_manifest_s_is_said_and_recorded(tmp_path, capsys):
    path = tiny.save_classifier(tmp_path / "m")
    rendering = Rendering(template=tiny.CHATML, max_length=100)
    write_manifest(
        tmp_path / "m",
        Manifest(
            rendering=rendering,
            template_hash=rendering.template_hash,
            dtype="float32",
            base_model="b",
            data_hash="d",
            versions={},
        ),
    )
    capsys.readouterr()
    model = build("models", "classifier", {"path": path, "max_length": 100})
    assert model.protocol()["max_length"] == 100
    assert "differs_from_training" not in model.protocol()
    assert capsys.readouterr().err == ""
    for name, value in (("max_length", 200), ("over_length", "left"), ("dtype", "bfloat16"), ("strip", False)):
        other = build("models", "classifier", {"path": path, name: value})
        trained = {"max_length": 100, "over_length": "unscored", "dtype": "float32", "strip": True}[name]
        assert other.protocol()[name] == value
        assert other.protocol()["differs_from_training"] == {name: {"trained": trained, "used": value}}
        assert f"m was trained with another protocol: {name} {trained}, now {value}" in capsys.readouterr().err
    plain = build("models", "classifier", {"path": path, "chat_template": "plain"})
    assert list(plain.protocol()["differs_from_training"]) == ["chat_template"]


def test_scoring_twice_gives_the_same_and_changes_nothing(path):
    cases = many(2)
    assert rewards(path, cases) == rewards(path, cases)
    assert cases == many(2)


def test_strip_is_said_for_a_model_from_elsewhere(path):
    kept, stripped = (build("models", "classifier", {"path": path, "strip": strip}) for strip in (False, True))
    assert (kept.protocol()["strip"], stripped.protocol()["strip"]) == (False, True)
    # the template ends with a line break, which is then the last token
    assert rewards(path, many(1), strip=False) != rewards(path, many(1), strip=True)
    assert rewards(path, many(1)) == rewards(path, many(1), strip=False)
