import pytest

from steelyard.core.comparison import Reply
from steelyard.core.errors import ConfigError, Place, RecordError
from steelyard.core.types import Case, Message, Prompt
from steelyard.prompts.classification import (
    NO_CATEGORY,
    category_question,
    is_asked,
    mapped,
    people_category,
    read_category,
)
from steelyard.prompts.taxonomy import parse_taxonomy, taxonomy

COOKING = {
    "categories": {
        "cooking": {"en": "Cooking", "zh": "烹饪", "below": {"soups": {"en": "Soups", "zh": "汤"}}},
        "travel": {"en": "Travel", "zh": "旅行", "about_en": "Places to go.", "about_zh": "去哪里。"},
    },
    "sources": {"alignbench": {"文本写作": "travel", "基本任务/常识知识": "cooking/soups"}, "My set": {"*": "cooking"}},
}


def tree():
    return parse_taxonomy(COOKING, where="mine.toml")


def made(category=(), *, text="q", meta=None, source=None):
    prompt = Prompt(id="a", messages=(Message(role="user", content=text),), category=category, source=source)
    return Case(prompt=prompt, responses=(), meta=meta)


def of_source(category, source="alignbench"):
    return {"category_from": {"by": "source", "source": source, "category": category, "known": True}, "x": 1}


@pytest.mark.parametrize(
    ("reply", "tiers"),
    [
        ("mathematics/algebra", ("mathematics", "algebra")),
        ("  **mathematics/algebra**. ", ("mathematics", "algebra")),
        ("`mathematics`", ("mathematics",)),
        ("Category: Mathematics", ("mathematics",)),
        ("类别：数学", ("mathematics",)),
        ("数学/代数与函数", ("mathematics", "algebra")),
        ("mathematics/algebra: Algebra and functions", ("mathematics", "algebra")),
        ("It asks to solve an equation, so:\n\nmathematics/algebra", ("mathematics", "algebra")),
        ("MATHEMATICS / ALGEBRA", ("mathematics", "algebra")),
        ("code/", ("code",)),
        ("NONE", NO_CATEGORY),
        ("无。", NO_CATEGORY),
        ("mathematics/algebra\nmathematics/algebra", ("mathematics", "algebra")),
    ],
)
def test_a_category_on_the_last_line_is_read(reply, tiers):
    assert read_category(Reply(request="r", text=reply), taxonomy()) == tiers


@pytest.mark.parametrize(
    "reply",
    [
        "", "  \n ", "mathematics or code", "code\nmathematics", "mathematics\nBut I am not sure.",
        "mathematics/soups", "algebra: the category that does not fit", "The category is not code", "NONE\ncode",
        "/", "code: a program\nmathematics: a sum", "x" * 100_000, "code," * 1000, "NONE of code",
        "not mathematics", "{\"category\": \"code\", \"other\": \"safety\"}",
    ],
)  # fmt: skip
def test_a_reply_without_exactly_one_category_is_unparsed(reply):
    assert read_category(Reply(request="r", text=reply), taxonomy()) is None


def test_a_failed_reply_is_unparsed_whatever_it_says():
    assert read_category(Reply(request="r", text="code", failure="truncated"), taxonomy()) is None
    assert read_category(Reply(request="r"), taxonomy()) is None


def test_the_question_is_in_the_language_of_the_prompt_and_lists_every_category():
    english, chinese = (
        category_question([Message(role="user", content=text)], tree(), max_tokens=9)
        for text in ("How do I make soup?", "汤怎么做？请用 Python 写")
    )
    assert [line for line in english.messages[0].content.splitlines() if ": " in line and "/" in line] == [
        "cooking/soups: Soups"
    ]
    assert "travel: Travel (Places to go.)" in english.messages[0].content
    assert "travel: 旅行 (去哪里。)" in chinese.messages[0].content
    assert "How do I make soup?" in english.messages[1].content
    japanese = category_question([Message(role="user", content="味噌汁の作り方")], tree(), max_tokens=9)
    assert "Soups" in japanese.messages[0].content


def test_the_question_holds_all_user_turns_and_no_answers():
    turns = [("user", "first"), ("assistant", "an answer"), ("user", "second")]
    question = category_question([Message(role=role, content=text) for role, text in turns], tree(), max_tokens=9)
    assert question.messages[1].content == "=====\nfirst\n\nsecond\n====="


@pytest.mark.parametrize(
    ("case", "tiers"),
    [
        (made(("language",), meta=of_source(["文本写作", "创意文体写作"])), ("travel",)),
        (made(("knowledge", "everyday"), meta=of_source(["基本任务", "常识知识"])), ("cooking", "soups")),
        (made(("Soup talk",), source="My set"), ("cooking",)),
        (made(("Soups",)), ("cooking", "soups")),
        (made(("knowledge",)), ("knowledge",)),
        (made(), ()),
        (made(("汤",), meta={"category_from": "a text"}), ("cooking", "soups")),
        (made(("汤",), meta=of_source([1, 2])), ("cooking", "soups")),
    ],
)
def test_source_categories_are_mapped_to_the_users_taxonomy(case, tiers):
    result = mapped(case, tree())
    assert result.prompt.category == tiers
    if tiers != case.prompt.category:
        assert result.meta["category_from"]["by"] == "source"
        assert {key: value for key, value in result.meta.items() if key != "category_from"} == {
            key: value for key, value in (case.meta or {}).items() if key != "category_from"
        }


def test_which_prompts_are_asked_about():
    prompts = [made(category).prompt for category in ((), ("unknown",), ("cooking",))]
    assert [[is_asked(prompt, tree(), which) for prompt in prompts] for which in ("missing", "unknown", "all")] == [
        [True, False, False], [True, True, False], [True, True, True],
    ]  # fmt: skip


def test_peoples_categories_are_keys_or_names_and_must_be_theirs():
    place = Place("people.jsonl", 3)
    assert people_category(made(("烹饪", "汤")), tree(), place) == ("cooking", "soups")
    assert people_category(made(), tree(), place) == NO_CATEGORY
    with pytest.raises(RecordError, match=r"(?s)^people.jsonl:3.*no category 'cookin'.*cooking"):
        people_category(made(("cookin",)), tree(), place)
    with pytest.raises(RecordError, match=r"(?s)^people.jsonl:3.*language model gave"):
        people_category(made(("cooking",), meta={"category_from": {"by": "chat", "chat": "m"}}), tree(), place)


def test_a_taxonomy_that_maps_a_source_to_nothing_it_has_is_refused():
    with pytest.raises(ConfigError, match=r"(?s)mine.toml: sources.x.*cooking/soup'.*cooking/soups"):
        parse_taxonomy(COOKING | {"sources": {"x": {"a": "cooking/soup"}}}, where="mine.toml")
