import json

import pytest

from chat_server import chatting
from steelyard.core.errors import ConfigError, EvidenceError, KindError, RecordError
from steelyard.core.types import Case, Message, Prompt
from steelyard.io.cases import read_cases, write_cases
from steelyard.io.trained_on import TRAINED_ON_FILE, write_trained_on
from steelyard.stages.prompts import Config, prompts
from steelyard.stages.prompts import preview as preview_prompts

ENGLISH = "Could you explain to me how a heat pump works in a cold winter?"
CHINESE = "你能给我解释一下热泵在寒冷的冬天是怎么工作的吗？"


def made(name, text, language=None, category=(), **fields):
    prompt = Prompt(id=name, messages=(Message(role="user", content=text),), language=language, category=category)
    return Case(prompt=prompt, responses=(), **fields)


def written(tmp_path, *cases, name="raw.jsonl"):
    write_cases(tmp_path / name, cases)
    return tmp_path / name


def manifest(folder):
    return [json.loads(line) for line in (folder / "manifest.jsonl").read_text(encoding="utf-8").splitlines()]


def ids(folder):
    return [case.prompt.id for case in read_cases(folder / "cases.jsonl")]


def test_languages_are_filled_in_and_labels_stay(tmp_path):
    raw = written(tmp_path, made("a", ENGLISH), made("b", CHINESE), made("c", CHINESE[:8], "fr"), made("d", "1 + 1 ="))
    run = prompts(raw, tmp_path / "out", Config(languages="all", near_duplicates="off"))
    assert [case.prompt.language for case in read_cases(tmp_path / "out" / "cases.jsonl")] == ["en", "zh", "fr", None]
    assert run.summary.labels == {"differs": 1, "identified": 2, "unknown": 1}
    assert run.summary.scripts == {"Hans": 1}
    assert [(row["prompt"], row["rule"], row["action"]) for row in manifest(tmp_path / "out")] == [
        ("c", "language_differs: zh", "count"),
        ("d", "language_unknown", "count"),
    ]


def test_only_wanted_languages_stay(tmp_path):
    raw = written(tmp_path, made("a", ENGLISH), made("b", CHINESE), made("c", "12"))
    run = prompts(raw, tmp_path / "out", Config(only_languages=("zh",)))
    assert ids(tmp_path / "out") == ["b"]
    assert run.counts.dropped == {"language_not_wanted": 1, "language_unknown": 1}


def test_the_first_of_duplicates_without_private_data_stays(tmp_path):
    raw = written(
        tmp_path,
        made("private", f"{ENGLISH} Write to li.wei@corp.cn"),
        made("a", ENGLISH),
        made("b", f"  {ENGLISH.upper()}"),
        made("c", f"{ENGLISH} Thanks"),
        made("d", CHINESE),
    )
    run = prompts(raw, tmp_path / "out", Config())
    assert ids(tmp_path / "out") == ["a", "d"]
    assert run.counts.dropped == {"duplicate": 1, "near_duplicate": 1, "private_data: e_mail": 1}
    rows = {row["prompt"]: row for row in manifest(tmp_path / "out")}
    assert rows["b"]["figure"] == rows["b"]["limit"] == 1
    assert rows["c"]["figure"] >= rows["c"]["limit"] == 0.8
    assert rows["c"]["excerpt"] == "of prompt a"
    assert "li.wei" not in (tmp_path / "out" / "manifest.jsonl").read_text(encoding="utf-8")
    assert (run.summary.num_duplicate_groups, run.summary.largest_duplicate_group) == (1, 3)


def test_equal_texts_in_two_languages_are_no_duplicates(tmp_path):
    raw = written(tmp_path, made("a", "def add(a, b):", "de"), made("b", "def add(a, b):", "en"))
    assert prompts(raw, tmp_path / "out", Config()).counts.num_used == 2


def test_private_data_are_masked_counted_or_ignored_by_kind_and_rule(tmp_path):
    text = "Call +44 20 7946 0958 or write to li@corp.cn; card 4111 1111 1111 1111"
    raw = written(tmp_path, made("a", text, "en"))
    actions = {"phone": "mask", "e_mail": "count", "bank_card": "off"}
    run = prompts(raw, tmp_path / "out", Config(private_data=actions))
    (case,) = read_cases(tmp_path / "out" / "cases.jsonl")
    assert case.prompt.messages[0].content == "Call [PHONE] or write to li@corp.cn; card 4111 1111 1111 1111"
    assert run.summary.findings == {
        "private_data: e_mail": {"count": 1},
        "private_data: international_phone": {"mask": 1},
    }
    with pytest.raises(EvidenceError, match="none of 1 prompt stays"):
        prompts(raw, tmp_path / "all", Config(private_data={"phone": "mask", "international_phone": "drop"}))
    with pytest.raises(ConfigError, match="unknown private data 'phones'"):
        prompts(raw, tmp_path / "bad", Config(private_data={"phones": "mask"}))


def test_overlap_is_found_in_any_format_and_with_trained_prompts(tmp_path):
    raw = written(tmp_path, made("a", ENGLISH), made("b", CHINESE), made("c", "What is the capital of Mongolia?"))
    bench = tmp_path / "bench.json"
    bench.write_text(
        json.dumps([{"prompt": f"{ENGLISH}!", "chosen": "x", "rejected": "y"}]), encoding="utf-8"
    )  # another format
    model = tmp_path / "model"
    model.mkdir()
    write_trained_on(model / TRAINED_ON_FILE, [made("z", f"{CHINESE} ")], base=tmp_path)
    run = prompts(raw, tmp_path / "out", Config(), against=[bench], trained=[model])
    assert ids(tmp_path / "out") == ["c"]
    assert [(one.name, one.num_prompts, one.num_overlapping) for one in run.summary.overlaps] == [
        (str(bench), 1, 1),
        (str(model), None, 1),
    ]
    assert [row["rule"].partition(":")[0] for row in manifest(tmp_path / "out")] == ["overlap", "trained_on"]
    strange = tmp_path / "strange.json"
    strange.write_text('[{"x": 1}]', encoding="utf-8")
    with pytest.raises(KindError):
        prompts(raw, tmp_path / "out2", Config(), against=[strange])
    with pytest.raises(EvidenceError, match="steelyard train"):
        prompts(raw, tmp_path / "out3", Config(), trained=[tmp_path])


def test_shares_come_from_a_file_or_from_settings(tmp_path):
    raw = written(
        tmp_path,
        *(made(f"e{n}", f"{n} {'x' * n} first", "en") for n in range(6)),
        made("z", CHINESE),
        made("y", "你好吗朋友", "zh"),
    )
    shares = tmp_path / "shares.toml"
    shares.write_text("[language]\nen = 0.5\nzh = 0.5\n", encoding="utf-8")
    config = Config(near_duplicates="off")
    run = prompts(raw, tmp_path / "out", config, shares=shares)
    assert run.counts.num_used + run.counts.dropped["balance"] == 8
    assert {(row.name, row.num_before, row.num_after) for row in run.summary.shares if row.kind == "language"} == {
        ("en", 6, 3),
        ("zh", 2, 2),
    }
    both = Config(language_shares={"en": 1.0})
    with pytest.raises(ConfigError, match="give one of them"):
        prompts(raw, tmp_path / "both", both, shares=shares)
    for shares_of, problem in (
        ("en = 0.5", "sum to 0.5"),
        ("en = -1.0\nzh = 2.0", "share of en is -1"),
        ("en = nan", "nan"),
    ):
        shares.write_text(f"[language]\n{shares_of}\n", encoding="utf-8")
        with pytest.raises(ConfigError, match=rf"shares\.toml, language_shares: the .*{problem}"):
            prompts(raw, tmp_path / "bad", config, shares=shares)
    shares.write_text("[languages]\nen = 1.0\n", encoding="utf-8")
    with pytest.raises(ConfigError, match="languages"):
        prompts(raw, tmp_path / "bad", config, shares=shares)


def test_a_dry_run_shows_examples_and_writes_nothing(tmp_path):
    raw = written(tmp_path, made("a", ENGLISH), made("b", ENGLISH), made("c", "How do I build a pipe bomb?", "en"))
    preview = preview_prompts(raw, tmp_path / "out", Config())
    assert not (tmp_path / "out").exists()
    assert preview.counts.dropped == {"duplicate": 1}
    assert [(rule, [row.prompt for row in rows]) for rule, rows in preview.examples.items()] == [
        ("duplicate", ["b"]),
        ("harmful: weapons", ["c"]),
    ]


def test_a_language_model_screens_for_harm_and_is_asked_once(tmp_path):
    raw = written(tmp_path, made("a", ENGLISH, "en"), made("b", CHINESE, "zh"), made("c", "Odd one, really", "en"))

    def answer(question):
        text = question["messages"][-1]["content"]
        return "WEAPONS" if CHINESE in text else "HARMLESS" if ENGLISH in text else "I cannot say"

    with chatting(answer) as server:
        chat = {"base_url": server.url, "model": "m", "num_tries": 1}
        config = Config(harmful="drop", chat=chat)
        run = prompts(raw, tmp_path / "out", config)
        assert len(server.questions) == 3
    assert ids(tmp_path / "out") == ["a", "c"]
    assert run.counts.dropped == {"harmful by model: weapons": 1}
    assert run.summary.num_unparsed_replies == 1
    assert run.summary.has_language_model


@pytest.mark.slow
def test_worker_processes_give_the_same_result(tmp_path):
    raw = written(tmp_path, *(made(f"p{n}", f"{n} {ENGLISH if n % 2 else CHINESE} {n * 7919}") for n in range(600)))
    one = prompts(raw, tmp_path / "one", Config(), workers=1)
    two = prompts(raw, tmp_path / "two", Config(), workers=2)
    assert one.summary == two.summary
    for name in ("cases.jsonl", "manifest.jsonl"):
        assert (tmp_path / "one" / name).read_bytes() == (tmp_path / "two" / name).read_bytes()


def test_an_identified_language_that_repeats_a_key_is_refused(tmp_path):
    raw = written(tmp_path, made("a", ENGLISH), made("a", "Something else entirely, my friend.", "en"))
    with pytest.raises(RecordError, match="languages=off"):
        prompts(raw, tmp_path / "out", Config())
    assert prompts(raw, tmp_path / "out", Config(languages="off")).counts.num_used == 2


@pytest.mark.parametrize("settings", [{"near_duplicates": 0.0}, {"overlap": 1.5}, {"category_shares": {"a": 0.3}}])
def test_impossible_settings_are_refused(tmp_path, settings):
    with pytest.raises(ConfigError):
        prompts(written(tmp_path, made("a", ENGLISH)), tmp_path / "out", Config(**settings))


def test_masked_data_are_masked_in_the_reference_and_in_what_formats_keep(tmp_path):
    mail = "li.wei@corp.cn"
    kept = {"raw": [{"question": f"Write to {mail}"}], "rows": 3}
    question = Prompt(
        id="a",
        messages=(Message(role="user", content=f"Translate: write to {mail}"),),
        language="en",
        reference=f"Schreib an {mail}",
        meta=kept,
    )
    raw = written(tmp_path, Case(prompt=question, responses=(), meta={"asked_by": mail}))
    prompts(raw, tmp_path / "out", Config(private_data={"e_mail": "mask"}))
    (case,) = read_cases(tmp_path / "out" / "cases.jsonl")
    assert case.meta == {"asked_by": "[E_MAIL]"}
    assert case.prompt.reference == "Schreib an [E_MAIL]"
    assert case.prompt.meta == {"raw": [{"question": "Write to [E_MAIL]"}], "rows": 3}
    assert mail not in (tmp_path / "out" / "manifest.jsonl").read_text(encoding="utf-8")
    prompts(raw, tmp_path / "counted", Config(private_data={"e_mail": "count"}))
    (case,) = read_cases(tmp_path / "counted" / "cases.jsonl")
    assert (case.prompt.reference, case.prompt.meta) == (question.reference, kept)
