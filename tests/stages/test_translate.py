import json
import re

import msgspec
import pytest
from typer.testing import CliRunner

from batch_service import answer_batches, expired
from chat_server import chatting, completion
from steelyard.cli.main import build_app
from steelyard.core.checks import content_id
from steelyard.core.errors import ConfigError, EvidenceError, FailuresError, ModelError, UserError, WaitingError
from steelyard.core.types import Case, Judgment, Message, Prompt, Rating, Response
from steelyard.io.cases import read_cases, write_cases
from steelyard.io.kept import read_kept
from steelyard.judging.translation_run import FAILED_FILE, FINDINGS_FILE, KEPT_FILE, REVIEW_FILES
from steelyard.stages.evaluate import Config as EvaluateConfig
from steelyard.stages.evaluate import evaluate
from steelyard.stages.languages import Config as LanguagesConfig
from steelyard.stages.languages import languages
from steelyard.stages.translate import Config, translate
from steelyard.stages.translate import forecast as forecast_translations
from translators import ANSWERS, QUESTION, as_asked, translation_of

RUSSIAN = [translation_of(text) for text in ANSWERS]


def item(number, language="en", *, answers=ANSWERS, question=None, subset=None):
    prompt = Prompt(
        id=f"p{number}",
        messages=(Message(role="user", content=question or QUESTION.format(number)),),
        language=language,
        subset=subset,
    )
    return Case(
        prompt=prompt,
        responses=tuple(Response(id=name, text=text) for name, text in zip("ab", answers, strict=True)),
        judgments=(Judgment(left="a", right="b", verdict="left", judge="ann", kind="human"),),
        ratings=(Rating(response="a", rater="ann", kind="human", dimension="help", value=1.0),),
        ranking=(("a",), ("b",)),
        meta={"row": number},
    )


def write(tmp_path, cases):
    write_cases(tmp_path / "cases.jsonl", cases)
    return tmp_path / "cases.jsonl"


def config(server, *languages, **settings):
    chat = {"base_url": server.url, "model": "m", "num_tries": 1, "workers": 3}
    return Config(to=languages or ("ru",), chat=chat, **settings)


def lines(folder, name):
    return [json.loads(line) for line in (folder / name).read_text(encoding="utf-8").splitlines()]


def test_each_item_is_in_every_language_under_its_id_with_its_labels(tmp_path):
    cases = write(tmp_path, [item(1), item(2)])
    with chatting(as_asked) as server:
        run = translate(cases, tmp_path / "out", config(server, "ru", "ukr_Cyrl"))
    found = list(read_cases(tmp_path / "out" / "cases.jsonl"))
    assert [case.key for case in found] == [
        ("p1", "en"), ("p1", "ru"), ("p1", "ukr_Cyrl"), ("p2", "en"), ("p2", "ru"), ("p2", "ukr_Cyrl"),
    ]  # fmt: skip
    source, target = found[0], found[1]
    assert source == item(1)
    assert target.prompt.messages[0].content == translation_of(source.prompt.messages[0].content)
    assert [each.text for each in target.responses] == RUSSIAN
    assert (target.ranking, target.pairs) == (source.ranking, source.pairs)
    assert (target.judgments, target.ratings) == ((), ()), "evidence about the English texts"
    assert target.meta["row"] == 1
    assert target.meta["translation"] == {"from": "en", "by": "m", "ways": ["whole"]}
    assert run.counts.num_in == 4
    assert run.summary.translator == "m"
    assert run.summary.tokens.num_replies == 4
    assert {name: each.num_translated for name, each in run.summary.languages.items()} == {"ru": 2, "ukr_Cyrl": 2}


def test_sources_without_a_language_get_that_of_the_run(tmp_path):
    cases = write(tmp_path, [item(1, None)])
    with chatting(as_asked) as server:
        run = translate(cases, tmp_path / "out", config(server))
    source, target = read_cases(tmp_path / "out" / "cases.jsonl")
    assert (source.prompt.language, target.meta["translation"]["from"], run.summary.source) == ("en", "en", "en")
    assert source == item(1), "all else stays"


def test_judgments_alone_are_refused_before_a_request_is_paid(tmp_path):
    unresolved = [msgspec.structs.replace(item(number), ranking=None) for number in (1, 2)]
    cases = write(tmp_path, unresolved)
    with chatting(as_asked) as server:
        for run in (translate, forecast_translations):
            with pytest.raises(EvidenceError, match="none of 2 items has a ranking or pairs") as caught:
                run(cases, tmp_path / "out", config(server))
            assert "resolve" in str(caught.value.do)
        assert not server.questions
        assert not (tmp_path / "out").exists()
        write(tmp_path, [unresolved[0], item(2)])
        assert translate(cases, tmp_path / "out", config(server)).counts.noted["cases without a pair"] == 1


def test_prompts_without_labels_of_any_kind_are_translated(tmp_path):
    bare = msgspec.structs.replace(item(1), ranking=None, judgments=(), ratings=())
    with chatting(as_asked) as server:
        run = translate(write(tmp_path, [bare]), tmp_path / "out", config(server))
    assert (run.counts.num_used, run.counts.noted["cases without a pair"]) == (1, 1)


def test_items_that_the_file_has_in_a_language_are_not_asked_for(tmp_path):
    present = msgspec.structs.replace(item(1, "rus_Cyrl", answers=RUSSIAN))
    cases = write(tmp_path, [item(1), present, item(2)])
    with chatting(as_asked) as server:
        run = translate(cases, tmp_path / "out", config(server))
        assert len(server.questions) == 1
    assert {name: each.num_present for name, each in run.summary.languages.items()} == {"ru": 0, "rus_Cyrl": 1}
    assert len(list(read_cases(tmp_path / "out" / "cases.jsonl"))) == 4


def test_code_subsets_keep_their_responses(tmp_path):
    answers = ("def add(x, y):\n    return x + y\n", "def add(x, y):\n    return x - y\n")
    cases = write(tmp_path, [item(1, answers=answers, subset="hep-python")])
    with chatting(as_asked) as server:
        translate(cases, tmp_path / "out", config(server))
    _, target = read_cases(tmp_path / "out" / "cases.jsonl")
    assert tuple(each.text for each in target.responses) == answers


@pytest.mark.parametrize(("subset", "places"), [("hep-python", []), ("alpacaeval-easy", ["response a", "response b"])])
def test_prose_about_code_that_stays_in_english_is_in_the_wrong_language_outside_code_subsets_alone(
    tmp_path, subset, places
):
    answers = (
        "This function returns the sum of all numbers in the list, which is what the user has asked for.",
        "The loop stops too early, so that the last element of the list is never added to the sum.",
    )
    question = "Напишите функцию, которая возвращает сумму всех чисел из списка."
    cases = [
        item(1, answers=answers, subset=subset, question="Write a function that returns the sum of all numbers."),
        item(1, "ru", answers=answers, subset=subset, question=question),
    ]
    translate(write(tmp_path, cases), tmp_path / "out", Config(check_only=True))
    wrong = {each["place"] for each in lines(tmp_path / "out", "findings.jsonl") if each["kind"] == "wrong_language"}
    assert sorted(wrong) == places


def test_damage_is_found_written_and_left_out_in_every_language(tmp_path):
    cases = write(tmp_path, [item(number) for number in range(30)])

    def damaged(question):
        text = as_asked(question)
        is_second = "Ukrainian" in question["messages"][0]["content"]
        return text.replace("7", "8") if "номером 7?" in text and not is_second else text

    with chatting(damaged) as server:
        run = translate(cases, tmp_path / "out", config(server, "ru", "uk"))
    found = lines(tmp_path / "out", FINDINGS_FILE)
    assert {(row["prompt"], row["language"]) for row in found} == {("p7", "ru")}
    assert {row["kind"] for row in found} == {"number"}
    kept = read_kept(tmp_path / "out" / KEPT_FILE)
    assert "p7" not in kept.prompts
    assert len(kept.prompts) == run.summary.num_kept == 29
    assert kept.left_out == {"p7": ("ru: number",)}
    reviewed = [case.prompt.id for case in read_cases(tmp_path / "out" / REVIEW_FILES["native"])]
    assert reviewed[0] == "p7"
    quality = list(read_cases(tmp_path / "out" / REVIEW_FILES["quality"]))
    assert quality[0].prompt.messages[0].content == "Where is the old town of number 7, please?"
    assert "8" in quality[0].responses[0].text
    evaluated = evaluate(
        [tmp_path / "out" / "cases.jsonl"],
        tmp_path / "evaluated",
        EvaluateConfig(baselines=()),
        model="longer",
        kept_prompts=tmp_path / "out" / KEPT_FILE,
    )
    assert evaluated.counts.num_in == 3 * 29
    assert evaluated.counts.noted["not among the kept prompts"] == 3
    # A reduced bench is said to be one, also of the languages.
    reduced = ("not_kept", 3, 3 * 30)
    compared = languages([tmp_path / "evaluated"], out=tmp_path / "languages", config=LanguagesConfig(num_resamples=5))
    for run in (evaluated, compared):
        assert [(each.check, each.count, each.total) for each in run.findings if each.check == "not_kept"] == [reduced]


def test_translations_made_elsewhere_are_examined_and_none_is_made(tmp_path):
    cases = [item(number) for number in range(20)]
    targets = [
        item(number, "ru", answers=RUSSIAN, question=translation_of(each.prompt.messages[0].content))
        for number, each in enumerate(cases)
    ]
    targets[3] = item(3, "ru", answers=(RUSSIAN[0], RUSSIAN[0]), question=targets[3].prompt.messages[0].content)
    targets[4] = item(4, "ru", answers=ANSWERS, question=targets[4].prompt.messages[0].content)
    path = write(tmp_path, [*cases, *targets])
    run = translate(path, tmp_path / "out", Config(check_only=True))
    assert run.summary.translator is None
    assert not (tmp_path / "out" / "cases.jsonl").exists()
    assert run.summary.languages["ru"].num_equal == 1
    assert {"p3", "p4"} <= read_kept(tmp_path / "out" / KEPT_FILE).left_out.keys()
    kinds = {row["kind"] for row in lines(tmp_path / "out", FINDINGS_FILE) if row["prompt"] == "p4"}
    assert "wrong_language" in kinds


def test_failed_items_are_listed_and_over_the_limit_end_the_run(tmp_path):
    cases = write(tmp_path, [item(1), item(2)])

    def refusing(question):
        text = question["messages"][-1]["content"]
        return "I cannot help with that." if "number 2" in text else as_asked(question)

    with chatting(refusing) as server:
        with pytest.raises(FailuresError) as caught:
            translate(cases, tmp_path / "out", config(server))
        assert "1 of 2 translations failed" in caught.value.problem
        assert not (tmp_path / "out" / "run.json").exists()
        number = len(server.questions)
        run = translate(cases, tmp_path / "out", config(server, allow_failed=1))
        assert len(server.questions) == number, "what was answered is not asked again"
    assert [row["prompt"] for row in lines(tmp_path / "out", FAILED_FILE)] == ["p2"]
    assert run.counts.dropped == {"not translated": 1}
    assert read_kept(tmp_path / "out" / KEPT_FILE).prompts == ("p1",)


@pytest.mark.parametrize("is_hashed", [True, False])
def test_responses_under_hashes_of_their_texts_belong_together_by_place(tmp_path, is_hashed):
    """As `steelyard convert` reads files of one language each: the ids differ, and nothing is damaged."""

    def with_ids(made):
        names = [content_id(each.text) if is_hashed else f"{made.prompt.language}-{each.id}" for each in made.responses]
        responses = tuple(msgspec.structs.replace(e, id=name) for e, name in zip(made.responses, names, strict=True))
        ranking = ((names[0],), (names[1],))
        return msgspec.structs.replace(made, responses=responses, ranking=ranking, judgments=(), ratings=())

    cases = [item(number) for number in range(12)]
    targets = [
        item(number, "ru", answers=RUSSIAN, question=translation_of(each.prompt.messages[0].content))
        for number, each in enumerate(cases)
    ]
    path = write(tmp_path, [with_ids(each) for each in (*cases, *targets)])
    run = translate(path, tmp_path / "out", Config(check_only=True))
    assert run.summary.languages["ru"].damage == ({} if is_hashed else {"responses": 12})
    reviewed = next(read_cases(tmp_path / "out" / REVIEW_FILES["native"]))
    assert {name for tier in reviewed.ranking for name in tier} == {each.id for each in reviewed.responses}


def test_responses_in_another_order_are_compared_by_their_ids(tmp_path):
    target = item(1, "ru", answers=RUSSIAN, question=translation_of(QUESTION.format(1)))
    target = msgspec.structs.replace(target, responses=target.responses[::-1])
    run = translate(write(tmp_path, [item(1), target]), tmp_path / "out", Config(check_only=True))
    assert run.summary.languages["ru"].num_damaged == 0


REFUSED = (400, b'{"error": {"message": "no"}}')


def number_in(question):
    found = re.search(r"number (\d+)", question["messages"][-1]["content"])
    return int(found[1]) if found else None


def test_a_failed_item_takes_one_request_and_the_same_command_asks_for_it_again(tmp_path):
    cases = write(tmp_path, [item(number) for number in range(6)])
    failing = {2, 4}
    with chatting(lambda question: (500, b"busy") if number_in(question) in failing else as_asked(question)) as server:
        with pytest.raises(FailuresError, match=r"2 of 6 translations failed \(failed, http_500 2\)"):
            translate(cases, tmp_path / "out", config(server))
        assert len(server.questions) == 6
        failing.clear()
        assert translate(cases, tmp_path / "out", config(server)).counts.num_used == 6
        assert sorted(number_in(question) for question in server.questions[6:]) == [2, 4]


def test_refused_items_at_the_beginning_end_no_run_that_allows_them(tmp_path):
    cases = write(tmp_path, [item(number) for number in range(30)])
    with chatting(lambda question: REFUSED if number_in(question) < 25 else as_asked(question)) as server:
        with pytest.raises(FailuresError, match="the first 20 requests all failed") as caught:
            translate(cases, tmp_path / "out", config(server))
        assert "allow_failed=N" in str(caught.value.do)
        run = translate(cases, tmp_path / "allowed", config(server, allow_failed=25))
    assert (run.counts.num_used, run.counts.dropped) == (5, {"not translated": 25})


@pytest.mark.parametrize("fault", [REFUSED, completion("ля", "length")], ids=["refused", "cut off"])
def test_items_that_are_difficult_to_the_end_are_listed_after_all_others(tmp_path, fault):
    """In later rounds they alone are asked for: all requests of these may fail, or be cut off."""
    cases = write(tmp_path, [item(number) for number in range(120)])

    def answer(question):
        text = question["messages"][-1]["content"]
        is_again = "refused so far" in question["messages"][0]["content"] or "===" not in text
        number = number_in(question)
        if number is None or number % 5 != 4:
            return as_asked(question) if "===" in text else fault
        return fault if is_again else "I cannot help with that."

    with chatting(answer) as server:
        run = translate(cases, tmp_path / "out", config(server, allow_failed=24))
    assert (run.counts.num_used, run.counts.dropped) == (96, {"not translated": 24})


def test_an_item_that_failed_in_a_batch_is_left_out_where_it_may_fail(tmp_path):
    folder, cases = tmp_path / "batches", write(tmp_path, [item(number) for number in range(5)])
    with chatting(as_asked) as server:
        chat = {"base_url": server.url, "model": "served"}
        with pytest.raises(WaitingError, match="5 requests wait"):
            translate(cases, tmp_path / "out", Config(to=("ru",), chat=chat), batch=folder)
        answer_batches(folder, server, fails=lambda one: expired(one) if number_in(one["body"]) == 3 else None)
        run = translate(cases, tmp_path / "out", Config(to=("ru",), chat=chat, allow_failed=1), batch=folder)
    assert run.summary.languages["ru"].failed == {"failed, batch_expired": 1}
    assert run.counts.num_used == 4


def test_more_failures_in_a_batch_than_allowed_are_all_asked_again(tmp_path):
    folder, cases = tmp_path / "batches", write(tmp_path, [item(number) for number in range(5)])
    with chatting(as_asked) as server:
        chat = {"base_url": server.url, "model": "served"}
        config = Config(to=("ru",), chat=chat, allow_failed=2)
        with pytest.raises(WaitingError, match="5 requests wait"):
            translate(cases, tmp_path / "out", config, batch=folder)
        answer_batches(folder, server, fails=lambda one: expired(one) if number_in(one["body"]) < 3 else None)
        with pytest.raises(WaitingError, match="3 requests wait"):
            translate(cases, tmp_path / "out", config, batch=folder)
        answer_batches(folder, server)
        run = translate(cases, tmp_path / "out", config, batch=folder)
    assert run.counts.num_used == 5


def test_blocks_of_one_item_that_fail_in_a_batch_are_one_failed_item(tmp_path):
    """A refused item is asked for block by block: its blocks wait together, and fail together."""
    folder = tmp_path / "batches"
    blocks = "\n\n".join(f"The answer to part {part} has the number 3 in it." for part in range(4))
    cases = write(tmp_path, [item(1), item(2), item(3, question=blocks)])

    def answer(question):
        return (
            "I cannot help with that."
            if "===" in question["messages"][-1]["content"] and "part 0" in str(question["messages"])
            else as_asked(question)
        )

    with chatting(answer) as server:
        chat = {"base_url": server.url, "model": "served"}
        settings = Config(to=("ru",), chat=chat, allow_failed=1)
        numbers = []
        for _ in range(4):
            with pytest.raises(WaitingError) as waiting:
                translate(cases, tmp_path / "out", settings, batch=folder)
            numbers.append(waiting.value.num_waiting)
            answer_batches(
                folder, server, fails=lambda one: None if "===" in str(one["body"]["messages"]) else expired(one)
            )
        run = translate(cases, tmp_path / "out", settings, batch=folder)
    assert numbers[-1] > 1, "several blocks of one item waited"
    assert (run.counts.num_used, run.counts.dropped) == (2, {"not translated": 1})


def test_the_same_run_is_advised_only_where_it_sends_a_request_again(tmp_path):
    cases = write(tmp_path, [item(number) for number in range(5)])
    with (
        chatting(
            lambda question: "I cannot help with that." if number_in(question) != 1 else as_asked(question)
        ) as one,
        pytest.raises(FailuresError) as refused,
    ):
        translate(cases, tmp_path / "out", Config(to=("ru",), chat={"base_url": one.url, "model": "m"}))
    assert "run the same again" not in str(refused.value.do)
    assert "allow_failed=" in str(refused.value.do)


@pytest.mark.parametrize(
    ("languages", "settings", "words"),
    [
        ((), {}, "no language to translate into"),
        (("xx-klingon",), {}, "no known language"),
        (("",), {}, "no known language"),
        (("es;de",), {}, "write several with commas"),
        (("es de",), {}, "write several with commas"),
        (("es.de",), {}, "write several with commas"),
        (("de", "deu_Latn"), {}, "are one language"),
        (("zh", "zh_CN"), {}, "are one language"),
        (("de", "de"), {}, "named twice"),
        (("en",), {}, "named twice"),
        (("eng_Latn",), {}, "are one language"),
        (("de",), {"chat": {}}, "no translator"),
        (("de",), {"source": "tlh"}, "no known language"),
    ],
)
def test_languages_are_checked_before_anything_is_read(tmp_path, languages, settings, words):
    chosen = {"to": languages, "chat": {"base_url": "http://127.0.0.1:9/v1", "model": "m"}} | settings
    with pytest.raises(ConfigError) as caught:
        translate(tmp_path / "absent.jsonl", tmp_path / "out", Config(**chosen))
    assert words in str(caught.value)
    assert not (tmp_path / "out").exists()


@pytest.mark.parametrize(
    ("setting", "value"),
    [
        ("allow_failed", "-1"),
        ("num_review", "-1"),
        ("max_truncated", "1.5"),
        ("max_truncated", "-0.1"),
        ("allow_failed", "x"),
    ],
)
def test_numbers_out_of_bounds_are_refused(tmp_path, setting, value):
    words = ["translate", str(write(tmp_path, [item(1)])), "--check-only", "--out", str(tmp_path / "out")]
    with pytest.raises(ConfigError, match=f"{setting} is "):
        CliRunner().invoke(build_app(), [*words, "--set", f"{setting}={value}"], catch_exceptions=False)
    assert not (tmp_path / "out").exists()


@pytest.mark.parametrize(
    ("cases", "words"),
    [
        ([item(1, "de"), item(2, "fr")], "no item is in English"),
        ([item(1, "en"), item(1, "en-US")], "two items in"),
    ],
)
def test_a_file_without_sources_or_with_an_item_twice_is_refused(tmp_path, cases, words):
    path = write(tmp_path, cases)
    with chatting(as_asked) as server, pytest.raises(EvidenceError) as caught:
        translate(path, tmp_path / "out", config(server, "ru"))
    assert words in str(caught.value)
    assert not server.questions


def test_examining_a_file_of_one_language_says_what_is_missing(tmp_path):
    with pytest.raises(UserError) as caught:
        translate(write(tmp_path, [item(1)]), tmp_path / "out", Config(check_only=True))
    assert "no item of another language" in str(caught.value)


def test_a_forecast_counts_the_first_requests_and_sends_none(tmp_path):
    cases = write(tmp_path, [item(1), item(2), item(3)])
    with chatting(as_asked) as server:
        forecast = forecast_translations(cases, tmp_path / "out", config(server, "ru", "uk"))
        assert not server.questions
    assert (forecast.num_requests, forecast.num_answered) == (6, 0)


def test_replies_at_the_limit_of_an_engine_are_no_reason_to_ask_for_longer_ones(tmp_path):
    """A random model writes on to its limit of 16 positions, which no setting moves."""
    tiny_translators = pytest.importorskip("tiny_translators", reason="transformers is not installed")
    folder = tiny_translators.save_nllb(tmp_path / "nllb", positions=16)
    names = [f"{first}{second}" for first in "bdf" for second in "aeiouy"]
    items = [item(number, question=f"Is {name} old?", answers=("Yes.", "No.")) for number, name in enumerate(names)]
    cases = write(tmp_path, items)
    chat = {"kind": "seq2seq", "path": folder, "num_beams": 1}
    with pytest.raises(ModelError, match="replies were cut off before their end") as caught:
        translate(cases, tmp_path / "out", Config(to=("de",), chat=chat))
    assert "choose another engine or break up long paragraphs" in str(caught.value)
    assert "max_characters" not in str(caught.value), "an engine is asked for each paragraph by itself"


def test_a_language_without_any_translation_ends_the_run_though_all_may_fail(tmp_path):
    cases = write(tmp_path, [item(number) for number in range(3)])

    def refusing(question):
        is_second = "Ukrainian" in question["messages"][0]["content"]
        return "I cannot help with that." if is_second else as_asked(question)

    with chatting(refusing) as server:
        settings = config(server, "ru", "uk", allow_failed=100)
        with pytest.raises(
            FailuresError, match=r"3 of 6 .*\(Ukrainian: not translated 3\); no item was translated into Ukrainian"
        ) as caught:
            translate(cases, tmp_path / "out", settings)
        assert "leave Ukrainian out of" in str(caught.value.do)
        assert not (tmp_path / "out" / "run.json").exists()
        number = len(server.questions)
        run = translate(cases, tmp_path / "out", config(server, "ru", allow_failed=100))
        assert (run.counts.num_used, len(server.questions)) == (3, number), "what was answered is kept"
        present = item(0, "ukr_Cyrl", answers=RUSSIAN)
        path = write(tmp_path, [item(0), item(1), present])
        assert translate(path, tmp_path / "some", settings).counts.dropped == {"not translated": 1}


@pytest.mark.parametrize("frame", ['"{}"', "**{}**", "Russian: {}", '{{"text": "{}"}}', "{}\ufffd"])
def test_framed_and_broken_translations_are_asked_for_again_and_what_is_not_seen_leaves(tmp_path, frame):
    cases = write(tmp_path, [item(1)])

    def framing(question):
        text, is_first = as_asked(question), "refused so far" not in question["messages"][0]["content"]
        parts = re.split(r"(^=== .* ===$)", text, flags=re.MULTILINE)
        return "".join(
            part if part.startswith("===") or not part.strip()
            else f"\n{(frame if is_first else '{}').format(part.strip())}\u200b\n"
            for part in parts
        )  # fmt: skip

    with chatting(framing) as server:
        run = translate(cases, tmp_path / "out", config(server))
    _, target = read_cases(tmp_path / "out" / "cases.jsonl")
    assert [each.text for each in target.responses] == RUSSIAN
    assert (run.summary.languages["ru"].ways, len(server.questions)) == ({"again": 3}, 2)
