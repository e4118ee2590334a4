"""Columns inside objects, published sets that have them, and several better answers in one row."""

import json

import pytest

import steelyard as sy
from converted_tables import back, read, texts
from steelyard.core.errors import RecordError
from steelyard.io.rows import write_rows
from steelyard.stages.convert import Config, convert


def tiers(case):
    return [sorted(texts(case)[name] for name in tier) for tier in case.ranking]


def comparison(choice, worker="w1", **info):
    return {
        "info": {"id": "t3", "subreddit": "秤", "title": "T", **info},
        "split": "train",
        "summaries": [
            {"text": "短。", "policy": "ref", "note": "n"},
            {"text": "طويل", "policy": "sup4", "note": None},
        ],
        "choice": choice,
        "worker": worker,
        "batch": "batch3",
        "extra": {"confidence": 8},
    }


def test_the_choice_of_openai_summaries_counts_from_zero_and_the_rows_come_back():
    rows = [comparison(choice, worker, post="帖子") for choice, worker in ((0, "w1"), (1, "w2"), (None, "w3"))]
    (case,), _counts = read(rows)
    assert [turn.content for turn in case.prompt.messages] == ["帖子"]
    assert [(vote.verdict, vote.judge, vote.kind, vote.batch) for vote in case.judgments] == [
        ("left", "w1", "human", "batch3"), ("right", "w2", "human", "batch3"), ("none", "w3", "human", "batch3"),
    ]  # fmt: skip
    assert [(response.text, response.author) for response in case.responses] == [("短。", "ref"), ("طويل", "sup4")]


@pytest.mark.parametrize("ending", [".jsonl", ".json", ".parquet"])
def test_posts_and_articles_are_prompts_in_every_kind_of_file(tmp_path, ending):
    rows = [comparison(1, post="帖子", article=None), comparison(0, post=None, article="Article")]
    write_rows(tmp_path / f"s{ending}", rows)
    done = convert(tmp_path / f"s{ending}", tmp_path / "o.jsonl")
    assert (done.from_kind, done.num_cases) == ("columns", 2)
    cases = list(sy.read_cases(tmp_path / "o.jsonl"))
    assert [case.prompt.messages[0].content for case in cases] == ["帖子", "Article"]
    assert [case.judgments[0].verdict for case in cases] == ["right", "left"]


def test_the_axes_of_openai_summaries_are_ratings_of_the_overall_quality():
    rows = [
        {"info": {"article": "A"}, "worker": "w", "split": "test",
         "summary": {"text": text, "policy": "p", "axes": {"overall": value, "accuracy": 7}}}
        for text, value in (("x", 3), ("y", 5))
    ]  # fmt: skip
    (case,), _counts = read(rows)
    assert [(texts(case)[each.response], each.dimension, each.value, each.rater) for each in case.ratings] == [
        ("x", "overall", 3, "w"), ("y", "overall", 5, "w"),
    ]  # fmt: skip
    assert tiers(case) == [["y"], ["x"]]


COLUMNS = {
    "prompt_column": "frage.text", "chosen_column": "antworten.0", "rejected_column": "antworten.1",
}  # fmt: skip


def test_columns_are_named_inside_objects_and_lists():
    rows = [{"frage": {"text": "Wie?", "nr": 4}, "antworten": ["so", "nie"], "quelle": "x"}]
    (case,), _ = read(rows, **COLUMNS)
    assert (case.prompt.messages[0].content, tiers(case)) == ("Wie?", [["so"], ["nie"]])
    assert back([case], **COLUMNS) == rows
    # A case of other origin has no objects around the columns: they are made.
    prompt = sy.Prompt(id="p", messages=case.prompt.messages)
    fresh = sy.Case(prompt=prompt, responses=case.responses, ranking=case.ranking)
    assert back([fresh], **COLUMNS) == [{"frage": {"text": "Wie?"}, "antworten": ["so", "nie"]}]
    dotted = {"a.b": "q", "chosen": "x", "rejected": "y"}
    (case,), _ = read([dotted], prompt_column="a.b", chosen_column="chosen", rejected_column="rejected")
    assert case.prompt.messages[0].content == "q"


@pytest.mark.parametrize("name", ["frage.wort", "satz.text"])
def test_a_nested_column_that_no_row_has_is_an_error(name):
    with pytest.raises(RecordError, match=f"no column '{name}'"):
        read([{"frage": {"text": "Wie?"}, "antworten": ["so", "nie"]}], **COLUMNS | {"prompt_column": name})


TURN = {"role": "assistant", "content": "a"}


@pytest.mark.parametrize("names", [("prompt", "chosen", "rejected"), ("question", "good", "bad")])
def test_several_better_and_several_worse_answers_are_two_tiers(names):
    rows = [
        dict(zip(names, ("什么是秤？", ["a", "b"], ["x", "y", "z"]), strict=True)),
        dict(zip(names, ("ما هو؟", ["a"], ["x"]), strict=True)),
        dict(zip(names, ("Was?", ["a", "b"], "x"), strict=True)),
    ]
    cases, _ = read(rows)
    assert [tiers(case) for case in cases] == [[["a", "b"], ["x", "y", "z"]], [["a"], ["x"]], [["a", "b"], ["x"]]]


def test_lists_of_conversations_are_two_tiers():
    row = {"prompt": "q", "chosen": [[TURN], [TURN | {"content": "b"}]], "rejected": [[TURN | {"content": "x"}]]}
    (case,), _ = read([row])
    assert tiers(case) == [["a", "b"], ["x"]]


def test_lists_of_answers_in_a_compressed_file(tmp_path):
    import gzip

    row = {"prompt": "q", "chosen": ["a", "b"], "rejected": ["x"]}
    (tmp_path / "s.jsonl.gz").write_bytes(gzip.compress(json.dumps(row).encode()))
    convert(tmp_path / "s.jsonl.gz", tmp_path / "o.jsonl", Config())
    (case,) = sy.read_cases(tmp_path / "o.jsonl")
    assert tiers(case) == [["a", "b"], ["x"]]
