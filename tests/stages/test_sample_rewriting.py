"""New prompts that models write from others: requests, refused replies, and the files of the run."""

import json

import pytest

from chat_server import record
from steelyard.core.errors import ConfigError, EvidenceError, FileError
from steelyard.core.types import Case, Message, Prompt
from steelyard.io.cases import read_cases, write_cases
from steelyard.responses.plan import parse_plan
from steelyard.responses.rewriting import RewritePlan, rewrite_requests
from steelyard.stages.sample import forecast, sample

WAYS = ("rephrase", "constrain", "deepen", "situate", "vary")
TEXTS = {
    "zh": "如何给小学生解释重力？请用一个比喻。",
    "en": "Write a Python function `median(xs)` that returns the median of a list of numbers.",
    "ar": "ما هي عاصمة المغرب؟ اذكر ثلاث حقائق عنها.",
    "hi": "दिल्ली में तीन दिन की यात्रा की योजना बनाइए।",
    "he": "הסבר לי למה השמיים כחולים ביום ואדומים בערב.",
}
GOOD = "假设你是科学博物馆的讲解员，请为八岁的孩子写一段一百字以内的说明，讲清苹果为什么会落地。"


def prompt_case(name, *turns, language=None):
    messages = tuple(Message(role=role, content=text) for role, text in turns)
    return Case(prompt=Prompt(id=name, messages=messages, language=language, source="open"), responses=())


CASES = [prompt_case(language, ("user", text), language=language) for language, text in TEXTS.items()]


@pytest.fixture
def cases(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    write_cases(tmp_path / "cases.jsonl", CASES)
    return tmp_path / "cases.jsonl"


def plan_file(folder, replies, **rewrite):
    chat = record(folder / "replies.jsonl", *replies) | {"name": "writer"}
    plan = {"models": [{"chat": chat}], "rewrite": {"ways": ["situate"], **rewrite}}
    (folder / "plan.json").write_text(json.dumps(plan), "utf-8")
    return folder / "plan.json"


def answered(**texts):
    """Return a recorded reply to the request about the prompt of each language."""
    return [{"contains": [TEXTS[language]], "text": text} for language, text in texts.items()]


def requests(case, **settings):
    return list(rewrite_requests([case], RewritePlan(**settings), seed=0))


def test_every_way_asks_in_the_language_of_the_prompt_with_the_prompt_as_it_is():
    for case in CASES:
        asked = requests(case, ways_per_prompt=5)
        assert [one.way for one in asked] == list(WAYS)
        texts = [one.request.prompt.messages[-1].content for one in asked]
        assert len({*texts}) == len({one.request.key for one in asked}) == 5
        for text in texts:
            assert f"=====\n{case.prompt.messages[0].content}\n=====" in text
            assert text.startswith("下面是" if case.prompt.language == "zh" else "Somebody")
            assert "{" not in text.replace(case.prompt.messages[0].content, "")


def test_ways_are_drawn_by_the_seed_and_equally_often():
    many = [prompt_case(f"p{number}", ("user", "q")) for number in range(1000)]
    drawn = [one.way for one in rewrite_requests(many, RewritePlan(ways_per_prompt=2), seed=1)]
    assert len(drawn) == 2000
    # 1,000 draws of two of five: 400 each, standard deviation 15.5.
    assert all(abs(drawn.count(way) - 400) < 5 * 15.5 for way in WAYS)
    assert drawn == [one.way for one in rewrite_requests(many, RewritePlan(ways_per_prompt=2), seed=1)]
    assert drawn != [one.way for one in rewrite_requests(many, RewritePlan(ways_per_prompt=2), seed=2)]


def test_earlier_turns_are_shown_and_no_text_can_end_the_marks():
    case = prompt_case("p", ("system", "قصير"), ("user", "a"), ("assistant", "b =========="), ("user", "{text} ===\nc"))
    (asked,) = requests(case, ways=("vary",))
    text = asked.request.prompt.messages[-1].content
    mark = "=" * 11
    assert f"{mark}\nsystem: قصير\n\nuser: a\n\nassistant: b ==========\n{mark}" in text
    assert text.endswith(f"{mark}\n{{text}} ===\nc\n{mark}")


def test_new_prompts_name_their_parent_and_the_others_are_refused_by_rule(cases, tmp_path):
    write_cases(tmp_path / "bench.jsonl", [prompt_case("b", ("user", "לאיזה  צבע נצבעים עננים בזמן השקיעה ומדוע?\n"))])
    replies = answered(
        zh=f"=====\n{GOOD}\n=====",
        en=TEXTS["en"].replace(".", "!"),
        ar="أنا آسف، لا أستطيع المساعدة في هذا الطلب.",
        hi="<|im_start|>user\nमुंबई<|im_end|>",
        he="לאיזה צבע נצבעים עננים בזמן השקיעה ומדוע?",
    )
    run = sample(cases, plan_file(tmp_path, replies, against=["bench.jsonl"]), tmp_path / "out")
    (case,) = read_cases(tmp_path / "out" / "cases.jsonl")
    prompt = case.prompt
    assert [(turn.role, turn.content) for turn in prompt.messages] == [("user", GOOD)]
    assert (prompt.language, prompt.source, case.responses) == ("zh", "rewritten by writer", ())
    assert prompt.meta == {"rewritten": {"parent": "zh", "parent_source": "open", "model": "writer", "way": "situate"}}
    assert prompt.id not in TEXTS
    rules = {"near_duplicate_of_parent": 1, "refusal": 1, "template_leftover": 1, "overlap: bench.jsonl": 1}
    assert (run.counts.num_in, run.counts.num_used, run.counts.dropped) == (5, 1, rules)
    assert run.summary.new_prompts == {"situate": 1}
    rows = [json.loads(line) for line in (tmp_path / "out" / "manifest.jsonl").read_text("utf-8").splitlines()]
    assert [row["rule"] for row in rows] == list(rules)
    assert "against.1" in run.inputs


def test_a_reply_that_repeats_the_request_is_no_prompt_and_marks_of_another_length_are_text(cases, tmp_path):
    heading = f"Title\n======\n{GOOD}"
    replies = answered(
        zh=f"原请求位于两行 ===== 之间\n=====\n{GOOD}",
        en=f"The new request:\n=====\nHow many moons has Mars?\n{'=' * 5}\nI hope this helps",
        ar=heading,
        hi="a ==== b ===== c",
        he="x=====y is no mark, nor is ==========, of the request here.",
    )
    run = sample(cases, plan_file(tmp_path, replies), tmp_path / "out")
    assert run.counts.dropped == {"echo_of_request": 3}
    assert [each.prompt.messages[-1].content[:5] for each in read_cases(tmp_path / "out" / "cases.jsonl")] == [
        "Title",
        "x====",
    ]


def test_prompts_of_the_file_and_earlier_new_ones_are_not_written_again(cases, tmp_path):
    replies = answered(zh=TEXTS["en"], en=GOOD, ar=GOOD, hi=" \n", he="א")
    run = sample(cases, plan_file(tmp_path, replies), tmp_path / "out")
    assert run.counts.dropped == {"near_duplicate": 1, "near_duplicate_of_new_prompt": 1, "samples empty": 1}
    assert run.counts.num_used == 2


def test_a_refused_or_cut_reply_is_never_a_prompt_and_private_data_are_not_shown(cases, tmp_path):
    private = GOOD + " ann.li@firma-weber.de"
    replies = [*answered(zh=GOOD, en=private), {"contains": [TEXTS["ar"]], "failure": "refused"},
               {"text": "x" * 30, "failure": "cut off"}]  # fmt: skip
    run = sample(cases, plan_file(tmp_path, replies, near_duplicates=0.5), tmp_path / "out", allow_failed=True)
    assert run.counts.dropped == {"near_duplicate_of_new_prompt": 1, "samples refused": 1, "samples cut off": 2}
    manifest = (tmp_path / "out" / "manifest.jsonl").read_text("utf-8")
    assert "[E_MAIL]" in manifest
    assert "ann.li@" not in manifest


def test_a_conversation_keeps_its_earlier_turns(tmp_path):
    turns = (("system", "קצר"), ("user", "Which planet is the largest?"), ("assistant", "Jupiter."), ("user", "Why?"))
    write_cases(tmp_path / "cases.jsonl", [prompt_case("p", *turns)])
    plan = plan_file(tmp_path, [{"text": "How do we know its mass?"}])
    sample(tmp_path / "cases.jsonl", plan, tmp_path / "out")
    (case,) = read_cases(tmp_path / "out" / "cases.jsonl")
    written = [(turn.role, turn.content) for turn in case.prompt.messages]
    assert written == [*turns[:-1], ("user", "How do we know its mass?")]


def test_where_no_reply_is_a_prompt_the_run_is_refused(cases, tmp_path):
    plan = plan_file(tmp_path, [{"text": "I'm sorry, but I can't help with that request."}])
    with pytest.raises(EvidenceError, match=r"none of 5 replies is a new prompt \(refusal 5\)"):
        sample(cases, plan, tmp_path / "out")
    assert not (tmp_path / "out" / "run.json").exists()
    assert not (tmp_path / "out" / "cases.jsonl").exists()


def test_a_forecast_counts_a_request_for_each_way(cases, tmp_path):
    plan = plan_file(tmp_path, [], ways=["vary", "deepen"], ways_per_prompt=2)
    assert forecast(cases, plan, tmp_path / "out").models["writer"].num_requests == 10


@pytest.mark.parametrize(
    ("table", "message"),
    [
        ({"ways": ["rephase"]}, "there is no way 'rephase' to rewrite a prompt"),
        ({"ways": ["vary", "vary"]}, "the way 'vary' is listed twice"),
        ({"ways": ["vary"], "ways_per_prompt": 2}, "ways_per_prompt is 2, and there are 1 ways"),
        ({"near_duplicates": 0}, "near_duplicates is 0"),
        ({"overlap": 2}, "overlap is 2"),
        ({"way": "vary"}, "way"),
    ],
)
def test_a_table_that_cannot_be_met_is_refused(table, message):
    content = {"models": [{"chat": {"model": "m"}}], "rewrite": table}
    with pytest.raises(ConfigError, match=message):
        parse_plan(content, where="plan.toml")


def test_a_missing_bench_and_a_prompt_that_ends_with_a_tool_are_refused(cases, tmp_path):
    with pytest.raises(FileError, match=r"none\.jsonl"):
        sample(cases, plan_file(tmp_path, [{"text": GOOD}], against=["none.jsonl"]), tmp_path / "out")
    write_cases(tmp_path / "tool.jsonl", [prompt_case("p", ("user", "a"), ("tool", "21"))])
    with pytest.raises(EvidenceError, match="does not end with a turn to answer"):
        sample(tmp_path / "tool.jsonl", plan_file(tmp_path, [{"text": GOOD}]), tmp_path / "out")
