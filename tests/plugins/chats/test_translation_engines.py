"""Engines that read no instructions: what is sent, which languages they have, and what is no translation."""

import json
import os
import shutil
import subprocess
import sys

import pytest

import tiny_translators
from chat_server import request as chat_request
from reward_server import serving
from steelyard.core.errors import ConfigError, ModelError
from steelyard.core.plugins import build
from steelyard.core.protocols import TranslationEngine
from steelyard.networks.loading import quiet

TEXT = "The price is <b>5 & more</b>.\n“Really?” 他说"


def google(translated):
    return {"data": {"translations": [{"translatedText": translated}]}}


def ask_google(answer, *requests, **settings):
    with serving(lambda path, question: answer) as server:
        chat = build("chats", "google_translate", {"base_url": server.url, "num_tries": 1, **settings})
        return list(chat.ask(requests or [chat_request(text=TEXT, languages=("en", "de"))])), server


def test_google_gets_the_text_as_it_is_and_the_codes_that_it_knows(monkeypatch):
    monkeypatch.setenv("GOOGLE_KEY", "key-of-nobody")
    pairs = [("en", "zh-Hans"), ("eng_Latn", "zho_Hant"), ("en", "zh-TW"), ("zh", "arb_Arab"), ("en", "pt-BR")]
    requests = [chat_request(f"r{number}", TEXT, languages=pair) for number, pair in enumerate(pairs)]
    replies, server = ask_google(google("übersetzt"), *requests, secret="GOOGLE_KEY", workers=1)
    assert {(reply.text, reply.failure) for reply in replies} == {("übersetzt", None)}
    assert server.paths == ["/language/translate/v2"] * 5
    assert {question["q"] for question in server.questions} == {TEXT}
    assert {question["format"] for question in server.questions} == {"text"}, "html would bring entities back"
    assert [(question["source"], question["target"]) for question in server.questions] == [
        ("en", "zh-CN"), ("en", "zh-TW"), ("en", "zh-TW"), ("zh-CN", "ar"), ("en", "pt"),
    ]  # fmt: skip
    headers = server.headers[0]
    assert headers["X-Goog-Api-Key"] == "key-of-nobody"
    assert "Authorization" not in headers
    assert "key-of-nobody" not in str(server.paths)


@pytest.mark.parametrize(
    "body",
    [
        {},
        [],
        "text",
        {"data": None},
        {"data": {"translations": []}},
        {"data": {"translations": [{"translatedText": "a"}, {"translatedText": "b"}]}},
        {"data": {"translations": [{"translatedText": 5}]}},
        {"data": {"translations": ["a"]}},
        {"data": {"translations": [{"text": "a"}]}},
    ],
)
def test_a_body_of_another_shape_is_a_failure_and_no_translation(body):
    ((reply,), _) = ask_google(body)
    assert (reply.text, reply.failure) == (None, "failed")
    assert reply.detail.startswith("malformed")


def test_an_empty_translation_is_returned_as_it_is():
    ((reply,), _) = ask_google(google(""))
    assert (reply.text, reply.failure) == ("", None)


def test_a_text_that_is_too_long_for_the_service_is_named_so():
    ((reply,), _) = ask_google((400, b'{"error": {"message": "Text too long"}}'))
    assert (reply.failure, reply.detail.partition(":")[0]) == ("failed", "too_long")


def test_a_key_that_is_refused_ends_the_run_and_is_not_shown(monkeypatch):
    monkeypatch.setenv("GOOGLE_KEY", "key-of-nobody")
    with pytest.raises(ModelError) as caught:
        ask_google((403, b'{"error": "key-of-nobody is not valid"}'), secret="GOOGLE_KEY")
    assert "403" in str(caught.value)
    assert "key-of-nobody" not in str(caught.value)


def test_a_language_that_is_none_is_refused_before_anything_is_sent():
    chat = build("chats", "google_translate", {"base_url": "http://127.0.0.1:9"})
    chat.check_languages("en", "zho_Hans")
    with pytest.raises(ConfigError, match="no known language"):
        chat.check_languages("en", "klingon")


@pytest.fixture(scope="module")
def folder(tmp_path_factory):
    return tiny_translators.save_nllb(tmp_path_factory.mktemp("nllb"))


@pytest.fixture(scope="module")
def engine(folder):
    return build("chats", "seq2seq", {"path": folder, "num_beams": 2})


@pytest.mark.skipif(sys.platform != "linux", reason="PyTorch has another library for threads")
def test_threads_sleep_while_they_wait_for_each_other(folder):
    program = f"from steelyard.core.plugins import build; build('chats', 'seq2seq', {{'path': {folder!r}}})"
    environment = {name: value for name, value in os.environ.items() if name != "OMP_WAIT_POLICY"}
    result = subprocess.run(
        [sys.executable, "-c", program],
        env=environment | {"OMP_DISPLAY_ENV": "true"},
        check=True,
        capture_output=True,
        text=True,
    )
    assert "OMP_WAIT_POLICY = 'PASSIVE'" in result.stderr


def test_a_model_says_by_its_vocabulary_which_languages_it_has(engine):
    assert isinstance(engine, TranslationEngine)
    for target in ("de", "deu_Latn", "zh", "zh-Hans", "zh-TW", "ar"):
        engine.check_languages("en", target)
    for source, target in (("en", "fr"), ("fr", "de")):
        with pytest.raises(ConfigError) as caught:
            engine.check_languages(source, target)
        assert "zh-Hant" in caught.value.allowed


def test_the_target_language_decides_the_first_token_of_the_translation(engine):
    import torch

    seen = []
    search = engine._search

    def searched(encoded, first, longest):
        rows = search(encoded, first, longest)
        seen.append((encoded[0][0], rows[0][0]))
        return rows

    engine._search = searched
    try:
        for target in ("de", "zh-Hant", "ar"):
            list(engine.ask([chat_request(text="Where is it?", languages=("en", target))]))
    finally:
        engine._search = search
    token = engine._tokenizer.convert_tokens_to_ids
    assert seen == [(token("eng_Latn"), token(code)) for code in ("deu_Latn", "zho_Hant", "arb_Arab")]
    assert torch.is_inference_mode_enabled() is False


def test_a_text_over_the_length_of_the_model_fails_instead_of_being_cut(engine):
    long, short = (
        chat_request("long", "so long a text " * 20, languages=("en", "de")),
        chat_request(languages=("en", "de")),
    )
    replies = {reply.request: reply for reply in engine.ask([long, short])}
    assert (replies["long"].text, replies["long"].failure) == (None, "failed")
    assert replies["long"].detail.startswith("too_long")
    assert replies["r"].text is not None


def test_a_batch_of_several_languages_is_answered_in_each(folder):
    together = build("chats", "seq2seq", {"path": folder, "num_beams": 1, "batch_size": 4})
    asked = [chat_request(f"r{place}", "Who?", languages=("en", code)) for place, code in enumerate(["de", "ar", "de"])]
    assert {reply.request for reply in together.ask(asked)} == {"r0", "r1", "r2"}


def test_a_model_without_all_its_weights_is_refused(folder, tmp_path):
    from safetensors.torch import load_file, save_file

    shutil.copytree(folder, tmp_path / "broken")
    weights = load_file(tmp_path / "broken" / "model.safetensors")
    kept = {name: value for name, value in weights.items() if "decoder.layers" not in name}
    save_file(kept, tmp_path / "broken" / "model.safetensors", metadata={"format": "pt"})
    with pytest.raises(ModelError, match="lacks weights"):
        build("chats", "seq2seq", {"path": str(tmp_path / "broken")})


@pytest.fixture(scope="module")
def convert(tmp_path_factory):
    """Convert a model as CTranslate2 does."""
    converters = pytest.importorskip("ctranslate2.converters", reason="CTranslate2 is not installed")

    def converted(folder, *files):
        path = tmp_path_factory.mktemp("ctranslate2") / "model"
        with quiet():
            converters.TransformersConverter(folder, copy_files=list(files)).convert(str(path))
        return path

    return converted


@pytest.fixture(scope="module")
def nllb(tmp_path_factory, convert):
    """A model whose translations differ, and the same as CTranslate2 writes it."""
    folder = tiny_translators.save_nllb(tmp_path_factory.mktemp("varied"), spread=0.7)
    return folder, convert(folder, "tokenizer.json", "tokenizer_config.json")


@pytest.fixture(scope="module")
def opus_mt(tmp_path_factory, convert):
    pytest.importorskip("sentencepiece", reason="sentencepiece is not installed")
    folder = tiny_translators.save_opus_mt(tmp_path_factory.mktemp("opus") / "opus-mt-en-mul")
    return folder, convert(folder, "source.spm", "target.spm", "vocab.json", "tokenizer_config.json")


@pytest.fixture(scope="module")
def converted(nllb):
    return nllb[1]


def replies(path, asked, **settings):
    """What matters of each reply, by request."""
    chat = build("chats", "seq2seq", {"path": str(path), **settings})
    return {
        reply.request: (reply.text, reply.failure, reply.prompt_tokens, reply.reply_tokens) for reply in chat.ask(asked)
    }


def test_a_translation_at_the_limit_is_cut_off_although_the_folder_forces_an_end_there(opus_mt):
    """opus-mt and mBART set ``forced_eos_token_id``, which closes a translation that does not end."""
    for folder in opus_mt:
        chat = build("chats", "seq2seq", {"path": str(folder), "num_beams": 2})
        (reply,) = chat.ask([chat_request(text="where is the train", languages=("en", "de"), max_tokens=5)])
        assert (reply.failure, reply.detail) == ("cut off", "at 5 tokens")


def test_a_missing_target_is_answered_with_the_targets_alone(opus_mt):
    chat = build("chats", "seq2seq", {"path": str(opus_mt[0])})
    with pytest.raises(ConfigError) as caught:
        chat.check_languages("en", "es")
    assert caught.value.allowed is not None
    assert "mul" not in caught.value.allowed


@pytest.mark.parametrize(("num_beams", "batch_size"), [(1, 1), (4, 1), (4, 3)])
@pytest.mark.parametrize(("family", "targets"), [("nllb", ("de", "ar", "zh-Hant")), ("opus_mt", ("de", "fr", "fr"))])
def test_both_engines_translate_alike(request, family, targets, num_beams, batch_size):
    texts = ("where is it", "a b c", "12 and 3!", "who", "so long a text " * 20)
    asked = [
        chat_request(f"r{place}", text, languages=("en", target))
        for place, (target, text) in enumerate(zip((*targets, "de", "de"), texts, strict=True))
    ]
    one, other = (
        replies(path, asked, num_beams=num_beams, batch_size=batch_size) for path in request.getfixturevalue(family)
    )
    assert one == other
    assert (one["r4"][1], len({reply[0] for reply in one.values()}) > 2) == ("failed", True)


def test_a_text_that_the_engine_fails_at_leaves_the_others_alone(converted, tmp_path):
    shutil.copytree(converted, tmp_path / "unlimited")
    settings = json.loads((tmp_path / "unlimited" / "tokenizer_config.json").read_text())
    del settings["model_max_length"]
    (tmp_path / "unlimited" / "tokenizer_config.json").write_text(json.dumps(settings))
    asked = [chat_request(name, text, languages=("en", "de")) for name, text in (("a", "so long " * 40), ("b", "who"))]
    chat = build("chats", "seq2seq", {"path": str(tmp_path / "unlimited"), "batch_size": 2})
    answered = {reply.request: reply for reply in chat.ask(asked)}
    assert answered["a"].failure == "failed"
    assert answered["a"].detail.startswith("engine: No position encodings are defined for positions >= 64")
    assert answered["b"].text


def test_a_converted_model_names_its_engine_and_its_own_number_type(converted):
    protocol = build("chats", "seq2seq", {"path": str(converted)}).protocol()
    assert (protocol["engine"], protocol["dtype"]) == ("CTranslate2", "float32")
    with pytest.raises(ConfigError, match="bfloat16"):
        build("chats", "seq2seq", {"path": str(converted), "dtype": "bfloat16"})


def test_a_converted_model_that_is_cut_off_is_refused(converted, tmp_path):
    shutil.copytree(converted, tmp_path / "broken")
    weights = (tmp_path / "broken" / "model.bin").read_bytes()
    (tmp_path / "broken" / "model.bin").write_bytes(weights[: len(weights) // 2])
    with pytest.raises(ModelError, match="convert the model again"):
        build("chats", "seq2seq", {"path": str(tmp_path / "broken")})


@pytest.fixture
def program(tmp_path):
    return tiny_translators.save_program(tmp_path / "apertium")


def test_apertium_knows_the_pairs_that_are_installed(program):
    chat = build("chats", "apertium", {"program": program})
    chat.check_languages("en", "deu_Latn")
    with pytest.raises(ConfigError) as caught:
        chat.check_languages("en", "fr")
    assert "en to de" in caught.value.allowed
    (reply,) = chat.ask([chat_request(text="früher", languages=("en", "de"))])
    assert reply.text == "eng-deu FRÜHER", "the plain pair, and not a variant of a country"


def test_a_text_that_the_program_fails_on_leaves_the_others_alone(program):
    chat = build("chats", "apertium", {"program": program, "workers": 2})
    asked = [chat_request("a", "fail", languages=("en", "de")), chat_request("b", "x", languages=("en", "de"))]
    replies = {reply.request: reply for reply in chat.ask(asked)}
    assert replies["a"].failure == "failed"
    assert replies["b"].text == "eng-deu X"


@pytest.mark.parametrize("content", [None, "#!/bin/sh\nexit 3\n"])
def test_a_program_that_is_absent_or_fails_is_an_error_of_the_user(tmp_path, content):
    path = tmp_path / "program"
    if content is not None:
        path.write_text(content)
        path.chmod(0o755)
    with pytest.raises(ModelError):
        build("chats", "apertium", {"program": str(path)})
