from collections import Counter

import msgspec
import pytest

from format_rows import read, write
from steelyard.core.errors import ConfigError, Place, RecordError
from steelyard.core.plugins import build
from steelyard.core.protocols import Row
from steelyard.core.types import Message, Pair, Prompt, Rating, Response
from strategies import case


def turns(*pairs):
    return [{"role": role, "content": content} for role, content in pairs]


def parts(row):
    (one,), _ = read("trl", row)
    return [turn.content for turn in one.prompt.messages], [response.text for response in one.responses]


def test_an_implicit_prompt_is_the_common_turns():
    row = {
        "chosen": turns(("user", "q"), ("assistant", "a"), ("user", "r"), ("assistant", "yes")),
        "rejected": turns(("user", "q"), ("assistant", "a"), ("user", "r"), ("assistant", "no")),
    }
    assert parts(row) == (["q", "a", "r"], ["yes", "no"])


TRANSCRIPT = "\n\nHuman: A?\n\nAssistant:"


@pytest.mark.parametrize(
    ("chosen", "rejected", "prompt", "answers"),
    [
        (f"{TRANSCRIPT} Yes, it is", f"{TRANSCRIPT} Yes, no", TRANSCRIPT, [" Yes, it is", " Yes, no"]),
        ("问题\n好的", "问题\n好坏", "问题\n", ["好的", "好坏"]),
    ],
)
def test_an_implicit_prompt_of_texts_ends_at_a_turn_and_never_inside_a_word(chosen, rejected, prompt, answers):
    assert parts({"chosen": chosen, "rejected": rejected}) == ([prompt], answers)


@pytest.mark.parametrize(
    "row", [{"chosen": "yes", "rejected": "yet"}, {"chosen": turns(("user", "a")), "rejected": turns(("user", "a"))}]
)
def test_a_prompt_that_cannot_be_told_is_refused_not_guessed(row):
    with pytest.raises(RecordError, match=r"f\.jsonl:1: chosen and rejected share no"):
        read("trl", row)


def test_the_language_and_category_of_a_row_are_those_of_its_prompt():
    row = {"prompt": "q", "chosen": "a", "rejected": "b", "language": "Chinese", "category": "Open QA", "source": "s"}
    (one,), _ = read("trl", row)
    assert (one.prompt.language, one.prompt.category, one.prompt.meta) == ("zh", ("Open QA",), {"source": "s"})
    assert write_texts("trl", one) == [row]
    renamed = msgspec.structs.replace(
        one, prompt=msgspec.structs.replace(one.prompt, language="ar", category=("Code",))
    )
    assert write_texts("trl", renamed) == [row | {"language": "ar", "category": "Code"}]


@pytest.mark.parametrize("cells", [{"lang": "zh-CN"}, {"language": "python", "lang": "zh-CN"}])
def test_the_language_can_stand_under_lang_and_what_names_none_stays_as_it_is(cells):
    row = {"prompt": "q", "chosen": "a", "rejected": "b", **cells}
    (one,), _ = read("trl", row)
    assert one.prompt.language == "zh-CN"
    assert one.prompt.meta == ({"language": "python"} if "language" in cells else None)
    assert write_texts("trl", one) == [row]


@pytest.mark.parametrize("language", [None, "", 3, ["zh"]])
@pytest.mark.parametrize("category", [None, "", ["Open QA", "Facts"], {"name": "x"}])
def test_cells_that_are_no_texts_come_back_as_they_are(language, category):
    row = {"prompt": "q", "chosen": "a", "rejected": "b", "language": language, "category": category}
    (one,), _ = read("trl", row)
    assert (one.prompt.language, one.prompt.category) == (None, ())
    assert write_texts("trl", one) == [row]


def test_a_category_of_several_tiers_is_counted_for_a_column_has_one_type():
    one = case(responses="ab", ranking=(("a",), ("b",)), category=("Open", "Facts"), language="zh")
    dropped = Counter()
    (row,) = build("formats", "trl").write([one], dropped)
    assert (row["language"], "category" in row, dropped["category"]) == ("zh", False, 1)


def test_a_margin_is_a_listed_pair_both_ways():
    (one,), _ = read("trl", {"prompt": "q", "chosen": "a", "rejected": "b", "margin": 2})
    assert one.pairs == (Pair(better=one.responses[0].id, worse=one.responses[1].id, margin=2.0),)
    assert write_texts("trl", one) == [{"prompt": "q", "chosen": "a", "rejected": "b", "margin": 2.0}]
    with pytest.raises(RecordError, match="'two' is not a number"):
        read("trl", {"prompt": "q", "chosen": "a", "rejected": "b", "margin": "two"})


def write_texts(kind, *cases, **settings):
    return list(build("formats", kind, {"texts": True, **settings}).write(cases, Counter()))


def written_implicit(text, *answers, texts):
    first, second = (Response(id=name, text=answer) for name, answer in zip("ab", answers, strict=True))
    one = msgspec.structs.replace(case(text=text, responses="ab", ranking=(("a",), ("b",))), responses=(first, second))
    dropped = Counter()
    (row,) = build("formats", "trl", {"implicit": True, "texts": texts}).write([one], dropped)
    return row, dropped["prompts inside the answers"]


def test_an_implicit_prompt_that_would_be_cut_elsewhere_is_counted():
    row, num_moved = written_implicit("What is it?\n", "It is.", "Nothing.", texts=True)
    assert (row, num_moved) == ({"chosen": "What is it?\nIt is.", "rejected": "What is it?\nNothing."}, 0)
    row, num_moved = written_implicit("What is it?", "It is.", "It isn't.", texts=True)
    assert (row, num_moved) == ({"chosen": "What is it?It is.", "rejected": "What is it?It isn't."}, 1)
    row, num_moved = written_implicit("What is it?", "It is.", "It isn't.", texts=False)
    assert num_moved == 0
    assert row == {
        "chosen": turns(("user", "What is it?"), ("assistant", "It is.")),
        "rejected": turns(("user", "What is it?"), ("assistant", "It isn't.")),
    }


@pytest.mark.parametrize(
    "row",
    [
        {"prompt": "q", "chosen": "yes", "rejected": "no"},
        {"prompt": turns(("user", "q")), "chosen": "yes", "rejected": "no"},
        {"prompt": "q", "chosen": turns(("assistant", "yes")), "rejected": turns(("assistant", "no"))},
        {"prompt": "q", "chosen": turns(("assistant", "yes")), "rejected": "no", "margin": None},
        {key: turns(("user", "q"), ("assistant", text)) for key, text in (("chosen", "yes"), ("rejected", "no"))},
    ],
)
def test_every_form_is_written_as_turns_or_as_texts(row):
    ones, _ = read("trl", row)
    parts = {"prompt": turns(("user", "q"))} | {
        key: turns(("assistant", text)) for key, text in (("chosen", "yes"), ("rejected", "no"))
    }
    assert write("trl", *ones)[0] == [parts]
    assert write_texts("trl", *ones) == [{"prompt": "q", "chosen": "yes", "rejected": "no"}]


@pytest.mark.parametrize("kind", ["trl", "openrlhf", "trl_unpaired"])
def test_texts_are_refused_with_a_count_where_they_cannot_hold_the_turns(kind):
    label = {"rater": "unknown", "kind": "human", "dimension": "label", "value": 1.0, "range": (0, 1)}
    rated = tuple(Rating(response=name, **label) for name in "ab")
    plain = case(responses="ab", ranking=(("a",), ("b",)), ratings=rated)
    system = (Message(role="system", content="s"), *plain.prompt.messages)
    answer = Response(id="a", messages=tuple(Message(role=role, content=role) for role in ("assistant", "user")))
    others = (
        msgspec.structs.replace(plain, prompt=Prompt(id="s", messages=system)),
        msgspec.structs.replace(plain, prompt=Prompt(id="m", messages=plain.prompt.messages * 3)),
        msgspec.structs.replace(plain, responses=(answer, plain.responses[1])),
    )
    with pytest.raises(ConfigError, match=r"3 of 4 prompts cannot be written as texts"):
        write_texts(kind, plain, *others)
    assert len(write_texts(kind, plain)) == (2 if kind == "trl_unpaired" else 1)


def test_meta_under_system_is_not_written_as_a_turn():
    row = {"prompt": "q", "chosen": ["good"], "rejected": ["bad"], "subset": "Math", "id": "7", "system": "x"}
    (one,), _ = read("rewardbench2", row | {"num_correct": 1, "num_rejected": 1, "models": ["m", "n"]})
    assert one.prompt.meta["system"] == "x"


def test_a_pair_without_a_prompt_is_counted_and_not_written():
    one = msgspec.structs.replace(case(responses="ab", ranking=(("a",), ("b",))), prompt=Prompt(id="p", messages=()))
    rows, dropped = write("trl", one)
    assert (rows, dropped["cases of another shape"]) == ([], 1)


def test_an_answer_that_begins_the_other_is_not_taken_for_the_prompt():
    assert parts({"chosen": "P\nA\n", "rejected": "P\nA\nB"}) == (["P\n"], ["A\n", "A\nB"])


@pytest.mark.parametrize("margin", [True, float("nan"), "two"])
def test_a_margin_that_is_no_number_is_refused(margin):
    with pytest.raises(RecordError, match=r"f\.jsonl:1 at margin: .* is not a number"):
        read("trl", {"prompt": "q", "chosen": "a", "rejected": "b", "margin": margin})


def test_texts_and_lists_of_texts_are_claimed():
    matches = build("formats", "trl").matches
    assert matches({"chosen": "a", "rejected": "b"})
    assert matches({"prompt": "p", "chosen": ["a", "b"], "rejected": ["c"]})


def test_a_text_beside_two_whole_conversations_does_not_become_a_second_prompt():
    row = {
        "prompt": "q",
        "chosen": turns(("user", "q"), ("assistant", "yes")),
        "rejected": turns(("user", "q"), ("assistant", "no")),
    }
    assert parts(row) == (["q"], ["yes", "no"])
    assert read("trl", row)[1] == {"titles beside whole conversations, left out": 1}
    # The same prompt as turns: an answer does not repeat it.
    again = row | {"prompt": turns(("user", "q"))}
    assert parts(again) == (["q"], ["yes", "no"])
    assert read("trl", again)[1] == {"prompts repeated in both answers, left out there": 1}
    apart = {"prompt": "q", "chosen": turns(("assistant", "yes")), "rejected": turns(("assistant", "no"))}
    assert parts(apart) == (["q"], ["yes", "no"])


def test_a_cut_at_a_line_break_is_counted_and_one_at_a_turn_is_not():
    _, warnings = read("trl", {"chosen": "Is it?\nYes.\nFor one", "rejected": "Is it?\nYes.\nBut"})
    assert warnings == {"prompts cut at a line break, not at a turn": 1}
    _, warnings = read("trl", {"chosen": f"{TRANSCRIPT} Yes", "rejected": f"{TRANSCRIPT} No"})
    assert warnings == {}


def test_what_a_turn_says_beyond_role_and_content_is_counted():
    told = [{"role": "user", "content": "q", "name": "Ann", "tool_calls": None}]
    _, warnings = read("trl", {"prompt": told, "chosen": "a", "rejected": "b"})
    assert warnings == {"other keys of turns, left out": 1}


NAMED = {"prompt_key": "question", "chosen_key": "good", "rejected_key": "bad"}


def read_named(row):
    return next(iter(build("formats", "openrlhf", NAMED).read([Row(Place("f.jsonl", 1), row)], Counter())))


def write_named(one, *, texts=False):
    return list(build("formats", "openrlhf", NAMED | {"texts": texts}).write([one], Counter()))


def test_without_a_prompt_key_the_answers_are_whole_conversations():
    row = {
        "chosen": turns(("user", "问"), ("assistant", "好")),
        "rejected": turns(("user", "问"), ("assistant", "坏")),
        "margin": 0.5,
    }
    (one,), _ = read("openrlhf", row)
    assert [turn.content for turn in one.prompt.messages] == ["问"]
    assert [response.text for response in one.responses] == ["好", "坏"]
    assert one.pairs == (Pair(better=one.responses[0].id, worse=one.responses[1].id, margin=0.5),)
    assert write("openrlhf", one)[0] == [row]


@pytest.mark.parametrize(
    "row",
    [
        {"question": turns(("user", "问")), "good": turns(("assistant", "好")), "bad": turns(("assistant", "坏"))},
        {"question": "User: q\nAssistant: ", "good": "yes", "bad": "no", "chosen": "a key of the row's own"},
    ],
)
def test_keys_are_those_of_the_settings(row):
    one = read_named(row)
    assert len(one.prompt.messages) == 1
    assert [len(tier) for tier in one.ranking] == [1, 1]
    assert write_named(one, texts=isinstance(row["good"], str)) == [row]


def test_what_comes_from_elsewhere_is_written_as_turns():
    one = case(text="q", responses="ab", ranking=(("a",), ("b",)))
    assert write_named(one) == [
        {
            "question": turns(("user", "q")),
            "good": turns(("assistant", "answer a")),
            "bad": turns(("assistant", "answer b")),
        }
    ]
    assert write("openrlhf", one)[0] == [
        {
            "chosen": turns(("user", "q"), ("assistant", "answer a")),
            "rejected": turns(("user", "q"), ("assistant", "answer b")),
        }
    ]


def test_texts_and_turns_are_not_mixed():
    with pytest.raises(RecordError, match=r"^f\.jsonl:1: question, good, bad are neither all texts nor all lists"):
        read_named({"question": "q", "good": turns(("assistant", "a")), "bad": turns(("assistant", "b"))})


def test_answers_that_share_nothing_send_to_the_setting():
    with pytest.raises(RecordError, match=r"(?s)^f\.jsonl:1: chosen and rejected share no prompt.*prompt_key"):
        read("openrlhf", {"chosen": "yes", "rejected": "yet"})
    with pytest.raises(RecordError, match=r"^f\.jsonl:1 at margin: .* is not a number"):
        read("openrlhf", {"chosen": "q\na", "rejected": "q\nb", "margin": "one"})


def test_two_keys_cannot_have_one_name():
    with pytest.raises(ConfigError, match="one name for several keys"):
        build("formats", "openrlhf", {"chosen_key": "x", "rejected_key": "x"})


def test_no_row_is_claimed():
    assert not build("formats", "openrlhf").matches({"chosen": "q\na", "rejected": "q\nb"})


HUMAN, ASSISTANT = "\n\nHuman:", "\n\nAssistant:"


def said(turns):
    return [(turn.role, turn.content) for turn in turns]


def test_the_shared_turns_are_the_prompt_and_the_last_turns_the_answers():
    start = f"{HUMAN} 你好{ASSISTANT} 你好！{HUMAN} 再见"
    (one,), warnings = read(
        "hh_rlhf", {"chosen": f"{start}{ASSISTANT} 再见！🙂", "rejected": f"{start}{ASSISTANT} 走。"}
    )
    assert said(one.prompt.messages) == [("user", "你好"), ("assistant", "你好！"), ("user", "再见")]
    assert [response.text for response in one.responses] == ["再见！🙂", "走。"]
    assert one.ranking == ((one.responses[0].id,), (one.responses[1].id,))
    assert warnings == {}


def test_transcripts_that_part_early_keep_all_their_turns():
    chosen = f"{HUMAN} a{ASSISTANT} b{HUMAN} c{ASSISTANT} d"
    rejected = f"{HUMAN} a{ASSISTANT} x"
    (one,), _ = read("hh_rlhf", {"chosen": chosen, "rejected": rejected})
    assert said(one.prompt.messages) == [("user", "a")]
    assert said(one.responses[0].messages) == [("assistant", "b"), ("user", "c"), ("assistant", "d")]
    assert one.responses[1].text == "x"


def test_a_transcript_that_ends_with_the_person_is_kept_and_counted():
    row = {"chosen": f"{HUMAN} a{ASSISTANT} b{HUMAN} c", "rejected": f"{HUMAN} a{ASSISTANT} d"}
    (one,), warnings = read("hh_rlhf", row)
    assert warnings == {"transcripts that end with a person's turn": 1}
    assert said(one.responses[0].messages) == [("assistant", "b"), ("user", "c")]


def test_transcripts_that_share_no_turn_are_kept_whole_and_counted():
    row = {"chosen": f"{HUMAN} a{ASSISTANT} b", "rejected": f"{HUMAN} c{ASSISTANT} d"}
    (one,), warnings = read("hh_rlhf", row)
    assert warnings == {"transcripts that share no turn": 1}
    assert one.prompt.messages == ()


def test_text_before_the_first_mark_is_a_system_turn():
    row = {key: f"Be kind.{HUMAN} q{ASSISTANT} {key}" for key in ("chosen", "rejected")}
    (one,), _ = read("hh_rlhf", row)
    assert said(one.prompt.messages) == [("system", "Be kind."), ("user", "q")]


@pytest.mark.parametrize("value", ["no mark", "", 3, None, [3], []])
def test_what_is_no_transcript_is_refused_with_its_line(value):
    good = {"chosen": f"{HUMAN} q{ASSISTANT} a", "rejected": f"{HUMAN} q{ASSISTANT} b"}
    with pytest.raises(RecordError, match=r"^f\.jsonl:2.*rejected"):
        read("hh_rlhf", good, {**good, "rejected": value})


def test_bare_transcripts_are_recognised_and_left_by_trl():
    row = {"chosen": f"{HUMAN} q{ASSISTANT} a", "rejected": f"{HUMAN} q{ASSISTANT} b"}
    assert build("formats", "hh_rlhf").matches(row)
    assert not build("formats", "trl").matches(row)
    for other in ({"prompt": f"{HUMAN} q"}, {"margin": 1.0}):
        assert not build("formats", "hh_rlhf").matches(row | other)
        assert build("formats", "trl").matches(row | other)
    assert not build("formats", "hh_rlhf").matches({"chosen": "q", "rejected": "r"})


def test_answers_that_begin_with_the_prompt_are_counted_and_kept():
    row = {"prompt": "Human: q\nAssistant:", "chosen": "Human: q\nAssistant: a", "rejected": "Human: q\nAssistant: b"}
    assert parts(row) == ([row["prompt"]], [row["chosen"], row["rejected"]])
    assert read("trl", row)[1] == {"answers that both begin with the whole prompt": 1}
    assert read("trl", row | {"rejected": "b"})[1] == {}


@pytest.mark.parametrize(
    ("turn", "problem"),
    [
        (
            {"role": "assistant", "content": None, "tool_calls": [{"id": "1"}]},
            "turn 2 of 'chosen' has no text, but tool calls",
        ),
        ({"role": "assistant", "content": None}, "turn 2 of 'chosen' has no text"),
        ("a", "'chosen' is neither a text nor turns"),
    ],
)
def test_a_turn_without_text_is_named(turn, problem):
    answer = [{"role": "assistant", "content": "Wait."}, turn]
    with pytest.raises(RecordError, match=rf"^f\.jsonl:1 at chosen: {problem}"):
        read("trl", {"prompt": "q", "chosen": answer, "rejected": "no"})
