"""Training files of single answers: the best response of a case, and answers with labels."""

from collections import Counter

import msgspec
import pytest
from msgspec.structs import replace

from each_value import each
from format_rows import read, write
from steelyard.core.errors import ConfigError, EvidenceError, RecordError
from steelyard.core.plugins import build
from steelyard.core.types import Case, Judgment, Message, Pair, Prompt, Rating, Response
from steelyard.io.cases import write_cases
from steelyard.stages.convert import Config, convert

SFT = ("trl_sft", "llamafactory_alpaca_sft", "llamafactory_sharegpt_sft")
KTO = ("trl_unpaired", "llamafactory_alpaca_kto", "llamafactory_sharegpt_kto")
TEXTS = {"a": "تجذب الأرض الأجسام", "b": "नहीं पता", "c": "`x = 1`\n\nيعني", "d": "不知道。"}


def ranked(ranking=None, pairs=None, *, turns=(("user", "为什么？"),), answers=TEXTS, ratings=()):
    messages = tuple(Message(role=role, content=text) for role, text in turns)
    responses = tuple(
        Response(id=name, text=text) if isinstance(text, str) else Response(id=name, messages=text)
        for name, text in answers.items()
    )
    return Case(prompt=Prompt(id="p", messages=messages), responses=responses, ranking=ranking, pairs=pairs,
                ratings=ratings)  # fmt: skip


def pairs(*ends, **fields):
    return tuple(Pair(better=better, worse=worse, **fields) for better, worse in ends)


def answers_of(kind, case, **settings):
    """Return the answers of the written rows with their labels, and what was counted."""
    dropped = Counter()
    found = []
    for row in build("formats", kind, settings).write([case], dropped):
        turns = row.get("completion") or row.get("conversations")
        answer = row["output"] if "output" in row else turns[-1].get("content", turns[-1].get("value"))
        found.append((answer, row.get("kto_tag", row.get("label"))))
    return found, dropped


BEST = {
    "a first tier of one": (ranked((("c",), ("a", "b"), ("d",))), "c"),
    "listed pairs alone": (ranked(pairs=pairs(("b", "a"), ("b", "d"), margin=0.5)), "b"),
    "the first tier before listed pairs": (ranked((("a",), ("b", "c")), pairs(("b", "c"))), "a"),
    "a tied first tier with pairs": (ranked((("a", "b"), ("c",)), pairs(("b", "c"), ("a", "c"))), "b"),
}
NO_BEST = {
    "a tied first tier": ranked((("a", "b"), ("c",))),
    "no evidence": ranked(),
    "no pair is left": ranked(pairs=()),
    "the first better one loses another pair": ranked(pairs=pairs(("a", "b"), ("c", "a"))),
    "the first better one is not in the first tier": ranked((("a", "b"), ("c",), ("d",)), pairs(("c", "d"))),
}


@each("kind", SFT)
@each("name", BEST)
def test_the_best_response_is_written_and_the_others_counted(kind, name):
    case, best = BEST[name]
    rows, dropped = answers_of(kind, case)
    assert rows == [(TEXTS[best], None)]
    assert dropped["responses other than the best"] == 3
    assert not dropped["cases without a best response"]


@each("kind", SFT)
@each("name", NO_BEST)
def test_a_case_without_a_best_response_is_left_out_and_counted(kind, name):
    rows, dropped = answers_of(kind, NO_BEST[name])
    assert (rows, dropped["cases without a best response"]) == ([], 1)


TURNS = (("system", "كن موجزا"), ("user", "天气？"), ("assistant", "在哪里？"), ("user", "दिल्ली"))


def test_conversations_and_tools_leave_turn_by_turn():
    called = tuple(Message(role=role, content=text) for role, text in
                   (("function", '{"name": "weather"}'), ("tool", "21"), ("assistant", "२१ डिग्री")))  # fmt: skip
    case = ranked((("a",), ("b",)), turns=TURNS, answers={"a": called, "b": "?"})
    turns = [{"role": role, "content": text} for role, text in TURNS]
    answer = [{"role": turn.role, "content": turn.content} for turn in called]
    assert write("trl_sft", case)[0] == [{"prompt": turns, "completion": answer}]
    rows = build("formats", "trl_sft", {"messages": True}).write([case], Counter())
    assert list(rows) == [{"messages": turns + answer}]
    senders = ("system", "human", "gpt", "human", "function_call", "observation", "gpt")
    texts = [turn["content"] for turn in turns + answer]
    conversation = [{"from": sender, "value": text} for sender, text in zip(senders, texts, strict=True)]
    assert write("llamafactory_sharegpt_sft", case)[0] == [{"conversations": conversation}]


def test_the_earlier_turns_of_an_answer_are_in_the_history_of_alpaca():
    turns = (("assistant", "Which?"), ("user", "The first."), ("assistant", "One."))
    case = ranked((("a",), ("b",)), turns=TURNS,
                  answers={"a": tuple(Message(role=r, content=t) for r, t in turns), "b": "?"})  # fmt: skip
    rows, _ = write("llamafactory_alpaca_sft", case)
    assert rows == [
        {"instruction": "The first.", "input": "", "history": [["天气？", "在哪里？"], ["दिल्ली", "Which?"]],
         "system": "كن موجزا", "output": "One."}
    ]  # fmt: skip


@each("kind", ["llamafactory_sharegpt_sft", "llamafactory_sharegpt_kto"])
@each("turns", [(("user", "a"), ("user", "b")), (("assistant", "a"), ("user", "b")), (("developer", "a"),)])
def test_a_conversation_that_llamafactory_skips_is_left_out_and_counted(kind, turns):
    case = ranked((("a",), ("b",)), turns=turns, answers={"a": "x", "b": "y"})
    rows, dropped = write(kind, case)
    assert rows == []
    assert dropped["conversations that LLaMA-Factory skips: their turns do not alternate"] == len(
        write(kind.replace("sharegpt", "alpaca"), case)[0]
    )


def test_a_pair_that_llamafactory_skips_is_counted():
    case = ranked((("a",), ("b",)), turns=(("user", "a"), ("user", "b")), answers={"a": "x", "b": "y"})
    assert write("llamafactory_sharegpt", case)[1][
        "conversations that LLaMA-Factory skips: their turns do not alternate"
    ] == 1  # fmt: skip


@each("kind", KTO)
def test_winners_of_all_their_pairs_are_good_and_losers_of_all_are_bad(kind):
    rows, dropped = answers_of(kind, ranked((("a",), ("b", "c"), ("d",))))
    assert rows == [(TEXTS["a"], True), (TEXTS["d"], False)]
    assert dropped["answers without a label of 0 or 1"] == 2
    rows, _ = answers_of(kind, ranked(pairs=pairs(("b", "a"), ("b", "d"))))
    assert rows == [(TEXTS["a"], False), (TEXTS["b"], True), (TEXTS["d"], False)]
    assert answers_of(kind, ranked())[0] == []


@each("kind", KTO)
def test_labels_of_people_come_before_pairs(kind):
    label = {"rater": "unknown", "kind": "human", "dimension": "label", "range": (0, 1)}
    ratings = (Rating(response="b", value=1.0, **label), Rating(response="a", value=0.0, **label))
    rows, _ = answers_of(kind, ranked((("a",), ("b",)), ratings=ratings))
    assert rows == [(TEXTS["a"], False), (TEXTS["b"], True)]


@each("kind", KTO)
def test_a_balanced_share_keeps_the_best_and_the_worst(kind):
    case = ranked(pairs=pairs(("b", "a"), ("b", "c"), ("b", "d")))
    rows, dropped = answers_of(kind, case, balanced=True)
    assert rows == [(TEXTS["b"], True), (TEXTS["d"], False)]
    assert dropped["answers left out for as many good as bad ones"] == 2


def test_an_empty_answer_never_gets_the_wrong_label():
    case = ranked((("a",), ("b",)), answers={"a": "", "b": "y"})
    for kind in KTO[1:]:
        rows, dropped = answers_of(kind, case)
        assert rows == [("y", False)]
        assert dropped["empty answers, which LLaMA-Factory labels wrongly"] == 1


def test_texts_are_written_for_one_turn_alone():
    one, several = ranked((("a",), ("b",))), ranked((("a",), ("b",)), turns=TURNS)
    writer = build("formats", "trl_sft", {"texts": True})
    assert list(writer.write([one], Counter())) == [{"prompt": "为什么？", "completion": TEXTS["a"]}]
    with pytest.raises(ConfigError, match="1 of 1 prompts cannot be written as texts"):
        list(writer.write([several], Counter()))
    with pytest.raises(ConfigError, match="a conversation under messages that is a text"):
        build("formats", "trl_sft", {"texts": True, "messages": True})


@pytest.mark.parametrize(
    ("kind", "row"),
    [
        ("trl_sft", {"messages": [{"role": "assistant", "content": "x"}]}),
        ("trl_sft", {"messages": [{"role": "user", "content": "x"}, {"role": "user", "content": "y"}]}),
        ("trl_sft", {"prompt": "x"}),
        ("llamafactory_sharegpt_sft", {"conversations": [{"from": "human", "value": "x"}]}),
        ("llamafactory_alpaca_sft", {"instruction": "x", "output": None}),
        ("llamafactory_alpaca_kto", {"instruction": "x", "output": "y", "kto_tag": "true"}),
    ],
)
def test_a_row_without_an_answer_or_a_label_is_refused_with_its_line(kind, row):
    with pytest.raises(RecordError, match=r"^f\.jsonl:1"):
        read(kind, row)


@pytest.mark.parametrize("kind", [*SFT, *KTO, "trl", "llamafactory_alpaca"])
def test_nothing_is_written_where_no_case_can_be(kind, tmp_path):
    write_cases(tmp_path / "cases.jsonl", [ranked()])
    with pytest.raises(EvidenceError, match=f"none of 1 case can be written as {kind}"):
        convert(tmp_path / "cases.jsonl", tmp_path / "rows.jsonl", Config(to_kind=kind))
    assert [path.name for path in tmp_path.iterdir()] == ["cases.jsonl"]


@pytest.mark.parametrize("kind", ["trl", "ms_swift", "openrlhf", "llamafactory_alpaca", "llamafactory_sharegpt"])
def test_margins_leave_or_are_counted_and_weights_are_counted(kind):
    case = ranked(pairs=pairs(("a", "b"), margin=0.75, weight=0.5))
    ((row,), dropped) = write(kind, case)
    has_margin = not kind.startswith("llamafactory")
    assert (row.get("margin"), dropped["margins"], dropped["weights"]) == ((0.75, 0, 1) if has_margin else (None, 1, 1))


@pytest.mark.parametrize("kind", ["trl", "trl_sft", "trl_unpaired"])
def test_facts_of_a_prompt_under_the_columns_of_prepared_tokens_stay_out_of_rows_for_trl(kind):
    case = ranked((("a",), ("b",)), answers={"a": "x", "b": "y"})
    # OpenAssistant has the votes of its annotators under ``labels``: TRL would take them for labels of tokens.
    meta = {"labels": {"name": ["spam"]}, "input_ids": [1], "messages": "m", "review_count": 3}
    dropped = Counter()
    rows = list(
        build("formats", kind, {}).write(
            [msgspec.structs.replace(case, prompt=msgspec.structs.replace(case.prompt, meta=meta))], dropped
        )
    )
    assert all(not {"labels", "input_ids", "messages"} & row.keys() for row in rows)
    assert [row["review_count"] for row in rows] == [3] * len(rows)
    assert dropped["prompt meta under keys of the format"] == 3 * len(rows)


@pytest.mark.parametrize("key", ["text", "chosen", "conversations"])
def test_a_row_to_imitate_has_no_column_by_which_trl_takes_it_for_another_type(key):
    case = ranked((("a",), ("b",)), answers={"a": "x", "b": "y"})
    case = msgspec.structs.replace(case, prompt=msgspec.structs.replace(case.prompt, meta={key: "z"}))
    dropped = Counter()
    rows = list(build("formats", "trl_sft", {"texts": True}).write([case], dropped))
    assert rows == [{"prompt": "为什么？", "completion": "x"}]
    assert dropped["prompt meta under keys of the format"] == 1


@pytest.mark.parametrize("kind", ["trl", "trl_sft", "llamafactory_sharegpt"])
def test_cases_with_judgments_and_no_ranking_are_to_be_ranked_first(kind, tmp_path):
    judgment = Judgment(left="a", right="b", verdict="left", judge="佐藤", kind="human")
    write_cases(tmp_path / "cases.jsonl", [replace(ranked(), ranking=None, judgments=(judgment,))])
    with pytest.raises(EvidenceError, match=r"steelyard resolve \S+cases\.jsonl"):
        convert(tmp_path / "cases.jsonl", tmp_path / "rows.jsonl", Config(to_kind=kind))
    write_cases(tmp_path / "tied.jsonl", [replace(ranked((tuple(TEXTS),)), judgments=(judgment,))])
    with pytest.raises(EvidenceError) as tied:
        convert(tmp_path / "tied.jsonl", tmp_path / "rows.jsonl", Config(to_kind="trl"))
    assert "resolve" not in str(tied.value), "a ranking that orders nothing is no reason to rank again"
