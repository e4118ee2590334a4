"""Tables as people have them: prompts under other names, who judged, labels of one's own, answers without labels."""

import json

import pytest

import steelyard as sy
from converted_tables import back, read, texts
from each_value import each
from steelyard.core.errors import KindError, OutputError, RecordError
from steelyard.core.types import Judgment
from steelyard.stages.convert import Config, convert

VOTES = {
    "prompt_column": "Frage", "first_column": "Antwort A", "second_column": "Antwort B", "label_column": "Besser",
}  # fmt: skip


def better(case):
    text, ((first, *_), (second, *_)) = texts(case), case.ranking
    return text[first], text[second]


@each("prompt", ["question", "input", "query", "instruction", "Question", "问题"])
@each("sides", [("chosen", "rejected"), ("good", "bad"), ("chosen_response", "rejected_response")])
def test_the_prompt_of_a_pair_may_have_another_name(prompt, sides):
    rows = [
        {"system": "你是导游。", prompt: f"介绍{city}", sides[0]: f"好的。\n{city}很好。", sides[1]: "好的。\n不知道。"}
        for city in ("北京", "上海")
    ]
    cases, counts = read(rows)
    assert counts.num_cases == 2
    for case, city in zip(cases, ("北京", "上海"), strict=True):
        turns = [(turn.role, turn.content) for turn in case.prompt.messages]
        assert turns == [("system", "你是导游。"), ("user", f"介绍{city}")]
        assert better(case) == (f"好的。\n{city}很好。", "好的。\n不知道。")
        assert not case.prompt.meta


@pytest.mark.parametrize("prompt", ["context", "user_message", "task"])
def test_a_common_first_line_is_no_prompt_beside_a_column_that_is_one(prompt):
    rows = [{prompt: f"q{n}", "chosen": f"Sure.\nyes {n}", "rejected": "Sure.\nno"} for n in (1, 2)]
    cases, _ = read(rows)
    assert [case.prompt.messages[0].content for case in cases] == ["q1", "q2"]
    with pytest.raises(RecordError, match=f"{prompt!r} beside them may be the prompt"):
        read(rows, from_kind="trl")


@pytest.mark.parametrize(
    ("key", "numbers", "tiers", "values"),
    [
        ("score", (1, 3, 2.5), [["b"], ["c"], ["a"]], [1.0, 3.0, 2.5]),
        ("reward", (-0.5, -0.5, -2), [["a", "b"], ["c"]], [-0.5, -0.5, -2.0]),
        ("rank", (2, 1, 3), [["b"], ["a"], ["c"]], [-2.0, -1.0, -3.0]),
    ],
)
def test_answers_that_are_objects_keep_their_numbers_and_other_fields(key, numbers, tiers, values):
    answers = [
        {"text": text, key: number, "model": "m", "finish_reason": "stop"}
        for text, number in zip("abc", numbers, strict=True)
    ]
    (case,), counts = read([{"prompt": "q", "responses": answers}])
    assert [[texts(case)[name] for name in tier] for tier in case.ranking or ()] == tiers
    assert [(rating.dimension, rating.value) for rating in case.ratings] == [(key, value) for value in values]
    assert {(response.author, str(response.meta)) for response in case.responses} == {
        ("m", "{'finish_reason': 'stop'}")
    }
    assert counts.noted == {}


def test_rows_of_one_prompt_join_under_every_spelling_of_its_language():
    row = {"prompt": "q", "response_a": "x", "response_b": "y", "winner": "A"}
    spellings = ["zh", "ZH", "zh-CN", "zho_Hans", "Chinese"]
    cases, _ = read([row | {"language": spelling} for spelling in [*spellings, "zh-Hant"]])
    assert [(case.prompt.language, len(case.judgments)) for case in cases] == [("zh", 5), ("zh-Hant", 1)]


def test_a_person_is_one_with_a_blank_and_in_another_unicode_form():
    row = {"prompt": "q", "response_a": "x", "response_b": "y", "winner": "A"}
    (case,), _ = read(
        [row | {"annotator": name} for name in ("Jos\u00e9", "Jose\u0301", "Jos\u00e9 ", " ", "jos\u00e9")]
    )
    assert [vote.judge for vote in case.judgments] == ["José"] * 3 + ["unknown", "josé"]


def test_who_judged_pairs_is_read_or_counted():
    rows = [
        {"prompt": "q", "chosen": "x", "rejected": "y", "annotator": "甲"},
        {"prompt": "q", "chosen": "y", "rejected": "x", "annotator": "乙"},
    ]
    _, counts = read(rows)
    assert counts.noted["annotators of pairs, not read (judge_column names them)"] == 2
    (case,), counts = read(rows, judge_column="annotator")
    votes = {(vote.judge, texts(case)[vote.left], vote.verdict) for vote in case.judgments}
    assert votes == {("甲", "x", "left"), ("乙", "y", "left")}
    assert not any("not read" in name for name in counts.noted)


def test_texts_that_are_blank_or_differ_in_form_alone_are_counted():
    rows = [
        {"prompt": "\u200b ", "chosen": "x", "rejected": "y"},
        {"prompt": "q", "chosen": "cafe\u0301", "rejected": "caf\u00e9"},
        {"prompt": "r", "chosen": "a\u200b", "rejected": "a"},
        {"prompt": "s", "chosen": "ab", "rejected": "a b"},
    ]
    _, counts = read(rows)
    assert counts.noted == {"empty or blank prompts": 1, "responses that differ from another in form alone": 2}


PERSON = {"user": "alice", "response_a": "x", "response_b": "y", "winner": "A"}
KIND_OF_TASK = {"task": "Math", "chosen": "A", "rejected": "B"}


@pytest.mark.parametrize(
    ("rows", "prompt"),
    [
        ([PERSON | {"text": "What is this?"}, PERSON | {"user": "bob", "text": "And that?"}], "text"),
        ([{"context": "A passage.", "question_text": "What is it?", "chosen": "A", "rejected": "B"}], "question_text"),
        ([KIND_OF_TASK, KIND_OF_TASK | {"chosen": "C"}], "task"),
    ],
)
def test_a_person_a_passage_or_a_kind_of_task_is_no_prompt_without_the_users_word(rows, prompt):
    with pytest.raises(KindError, match=rf'prompt_column="{prompt}"'):
        read(rows)


def test_turns_are_the_prompt_beside_a_kind_of_task():
    # UltraInteract of openbmb.
    turns = [{"from": "user", "value": "2 + 2?"}]
    rows = [KIND_OF_TASK | {"dataset": "g", "trajectory": turns, "id": "1", "parent_id": "0"}]
    (case,), _ = read(rows)
    assert [(turn.role, turn.content) for turn in case.prompt.messages] == [("user", "2 + 2?")]


@pytest.mark.parametrize(
    ("row", "call"),
    [
        (
            {"prompt": "q", "response1": "x", "response2": "y", "pref": {"choices": ["response1"]}, "annotation_id": 1},
            'first_column="response1", second_column="response2", label_column="pref.choices.0"',
        ),
        (
            {"prompt": "q", "response_a": "x", "response_b": "y", "score_a": "3", "score_b": "4"},
            'response_column=["response_a", "response_b"], rating_column=["score_a", "score_b"]',
        ),
        (
            {"質問": "q", "回答A": "x", "回答B": "y", "良い方": "A"},
            'first_column="回答A", second_column="回答B", label_column="良い方"',
        ),
        (
            {
                "conversation_hash": "c1",
                "conversation": [{"role": "user", "content": "q"}, {"role": "assistant", "content": "a"}],
                "model": "m",
            },
            'prompt_column="conversation")',
        ),
        ({"query": "q", "response_good": "x", "response_bad": "y", "score_good": 1}, None),
        ({"prompt": "q", "left_text": "the one", "other_text": "the other"}, "prompt_column=NAME"),
    ],
)
def test_the_proposed_columns_are_no_ids_numbers_or_hashes(row, call):
    if call is None:
        (case,), _ = read([row])
        assert better(case) == ("x", "y")
        return
    with pytest.raises(KindError) as refused:
        read([row])
    assert call in str(refused.value.do)


def test_published_tables_of_preferences_are_known_by_their_columns():
    openai = {"input": {"messages": [{"role": "user", "content": "q"}], "tools": []},
              "preferred_output": [{"role": "assistant", "content": "x"}],
              "non_preferred_output": [{"role": "assistant", "content": "y"}]}  # fmt: skip
    prometheus = {"orig_instruction": "q", "orig_response_A": "y", "orig_response_B": "x", "orig_preference": "B",
                  "orig_reference_answer": "r", "orig_criteria": "c", "instruction": "###Task"}  # fmt: skip
    swift = {"system": "s", "query": "q", "response": "x", "rejected_response": "y", "history": [["h", "i"]]}
    edits = {"context": [{"role": "user", "content": "q"}], "original_response": "o", "good_edited_response": "x",
             "bad_edited_response": "y", "language": "korean", "domain": "general"}  # fmt: skip
    (case,), _ = read([swift])
    assert ([turn.content for turn in case.prompt.messages], better(case)) == (["s", "h", "i", "q"], ("x", "y"))
    (case,), _ = read([edits])
    assert (case.prompt.language, case.prompt.category, better(case)) == ("ko", ("general",), ("x", "y"))
    (case,), _ = read([openai])
    assert (case.prompt.messages[0].content, better(case)) == ("q", ("x", "y"))
    (case,), _ = read([prometheus])
    (judgment,) = case.judgments
    assert (case.prompt.messages[0].content, case.prompt.reference) == ("q", "r")
    assert (texts(case)[judgment.right], judgment.verdict, judgment.kind) == ("x", "right", "llm")


def test_a_text_of_an_unknown_name_beside_two_answers_may_be_their_prompt():
    rows = [{"Aufgabe": f"Nenne {n} Zahlen.", "chosen": f"Ja.\n{n}", "rejected": "Ja.\nnein"} for n in (1, 2)]
    with pytest.raises(KindError, match=r'sy\.convert\(rows, chosen_column="chosen", .*prompt_column="Aufgabe"\)'):
        read(rows)


@pytest.mark.parametrize("name", ["messages", "conversation", "dialogue"])
def test_the_prompt_of_texts_may_be_turns(name):
    row = {name: turns(("user", "a"), ("assistant", "b"), ("user", "c")), "chosen": "x", "rejected": "y"}
    (case,), _ = read([row])
    assert ([turn.content for turn in case.prompt.messages], better(case)) == (["a", "b", "c"], ("x", "y"))


def test_judges_of_a_table_are_people_unless_the_settings_say_models():
    row = {"prompt": "q", "response_a": "x", "response_b": "y", "winner": "a", "judge": "gpt-4"}
    (case,), counts = read([row])
    assert counts.noted["judges read as people (of models: judge_kind=llm)"] == 1
    (case,), counts = read([row], settings={"judge_kind": "llm"})
    assert [(vote.judge, vote.kind) for vote in case.judgments] == [("gpt-4", "llm")]
    (case,), _ = read([{**row, "judge": {"id": 4, "email": "a@b.org"}}])
    assert case.judgments[0].judge == "a@b.org"


def test_whole_conversations_hold_their_prompt_also_beside_a_title():
    def whole(answer):
        return turns(("user", "Hallo"), ("assistant", "Ja?"), ("user", "Wie spät?"), ("assistant", answer))

    for row in (
        {"question": "Wie spät?", "chosen": whole("drei"), "rejected": whole("nie")},
        {"question": "Wie spät?", "chosen": json.dumps(whole("drei")), "rejected": json.dumps(whole("nie"))},
        {"question": "Wie spät?", "good": whole("drei"), "bad": whole("nie")},
    ):
        (case,), _ = read([row])
        assert [turn.content for turn in case.prompt.messages] == ["Hallo", "Ja?", "Wie spät?"]
        assert better(case) == ("drei", "nie")


def test_instruction_and_input_are_one_prompt_and_come_back(tmp_path):
    rows = [
        {"instruction": "Tóm tắt.", "input": text, "prefered_output": "a", "rejected_output": "b"}
        for text in ("Hà Nội", "Huế", "")
    ]
    cases, _ = read(
        rows, prompt_column="instruction", chosen_column="prefered_output", rejected_column="rejected_output"
    )
    assert [case.prompt.messages[0].content for case in cases] == ["Tóm tắt.\n\nHà Nội", "Tóm tắt.\n\nHuế", "Tóm tắt."]
    columns = {"prompt_column": ["instruction", "input"], "chosen_column": "prefered_output"}
    again = back(cases, **columns, rejected_column="rejected_output")
    assert again == rows


@pytest.mark.parametrize("system", ["", None, 3])
def test_a_system_text_is_a_turn_of_every_pair(system):
    row = {"prompt": "问", "chosen": "好", "rejected": "坏", "system": "短。"}
    (case, other), counts = read([row, {**row, "prompt": "q", "system": system}])
    assert counts.from_kind == "trl"
    assert [turn.role for turn in case.prompt.messages] == ["system", "user"]
    assert [turn.role for turn in other.prompt.messages] == ["user"]
    assert back([case], to_kind="trl")[0]["prompt"] == turns(("system", "短。"), ("user", "问"))


def test_several_worse_answers_are_pairs_of_one_case():
    messages = [{"role": "user", "content": "介绍熊猫"}, {"role": "assistant", "content": "熊猫吃竹子。"}]
    for row in (
        {"messages": messages, "rejected_response": ["熊猫。", "不知道。"]},
        {"prompt": "介绍熊猫", "chosen": "熊猫吃竹子。", "rejected": ["熊猫。", "不知道。"]},
        {"question": "介绍熊猫", "good": "熊猫吃竹子。", "bad": ["熊猫。", "不知道。"]},
    ):
        (case,), _ = read([row])
        tiers = [{texts(case)[name] for name in tier} for tier in case.ranking]
        assert tiers == [{"熊猫吃竹子。"}, {"熊猫。", "不知道。"}]


def blocks(text):
    return [{"type": "text", "text": text}]


@pytest.mark.parametrize(
    "form", [lambda turns: turns, lambda turns: json.dumps(turns, ensure_ascii=False)], ids=["turns", "text"]
)
def test_answers_may_be_turns_of_blocks_and_their_json_text(form):
    sides = {
        side: form([{"role": "user", "content": blocks("谁？")}, {"role": "assistant", "content": blocks(text)}])
        for side, text in (("chosen", "曹雪芹"), ("rejected", "罗贯中"))
    }
    (case,), _ = read([sides])
    assert (case.prompt.messages[-1].content, better(case)) == ("谁？", ("曹雪芹", "罗贯中"))


def votes(person, verdicts):
    questions = ("Was ist 1+1?", "من أنت؟", "你是谁？")
    return [
        {"Frage": question, "Antwort A": "zwei", "Antwort B": f"{question} nein", "Besser": verdict, "Wer": person}
        for question, verdict in zip(questions, verdicts, strict=True)
    ]


def test_votes_of_several_people_on_a_pair_are_judgments_of_one_case(tmp_path):
    rows = [
        row
        for place, verdicts in enumerate(("aab", "aba", "aab", "bab", "aaa"))
        for row in votes(f"p{place}", verdicts)
    ]
    cases, counts = read(rows, **VOTES)
    assert (counts.num_rows, counts.num_cases, counts.columns["judge_column"]) == (15, 3, "Wer")
    assert [[vote.verdict for vote in case.judgments] for case in cases] == [
        ["left", "left", "left", "right", "left"],
        ["left", "right", "left", "left", "left"],
        ["right", "left", "right", "right", "left"],
    ]
    assert [len(case.responses) for case in cases] == [2, 2, 2]
    assert {vote.judge for case in cases for vote in case.judgments} == {f"p{place}" for place in range(5)}


def test_files_of_five_people_merge_into_cases_of_five_judges():
    files = [
        sy.convert(votes(f"p{place}", verdicts), **VOTES)
        for place, verdicts in enumerate(("aab", "aba", "aab", "bab", "aaa"))
    ]
    merged = sy.merge(*files)
    assert merged.summary.num_cases == 3
    assert all(len({vote.judge for vote in case.judgments}) == 5 for case in merged.cases)
    assert not +merged.run.counts.noted.get("meta values that differ", 0)


def test_alpaca_eval_annotations_of_one_instruction_are_one_case():
    rows = [
        {"instruction": "q", "output_1": "a", "generator_1": "m", "output_2": "b", "generator_2": name,
         "annotator_index": person, "preference": 1, "note": f"{person}{name}"}
        for person in (1, 2) for name in ("n", "k")
    ]  # fmt: skip
    (case,), _ = read(rows)
    assert [(response.text, response.author) for response in case.responses] == [("a", "m"), ("b", "n"), ("b", "k")]
    assert [vote.judge for vote in case.judgments] == ["1", "1", "2", "2"]


LABELS = [("左", "left"), ("右", "right"), ("平局", "tie"), ("A>B", "left"), ("[[B>>A]]", "right"), ("A=B", "tie"),
          ("model_a", "left"), ("tie (bothbad)", "tie"), ("model_b", "right"),
          ("引き分け", "tie"), ("Ничья", "tie"),
          ("Response A is much better", "left"), ("B wins", "right"), ("model 1", "left"),
          ("both bad", "tie"), ("\uff11", "left"), ("\uff22", "right"), ("\u2461", "right")]  # fmt: skip


@pytest.mark.parametrize(("label", "verdict"), LABELS)
def test_labels_that_need_no_map(label, verdict):
    row = {"prompt": "q", "response_a": "x", "response_b": "y", "winner": label}
    (case,), counts = read([row])
    assert [vote.verdict for vote in case.judgments] == [verdict]
    meaning = {"left": "the first answer", "right": "the second answer", "tie": "a tie"}[verdict]
    assert counts.noted == {f"labels {label!r} read as {meaning}": 1}


@pytest.mark.parametrize("value", [True, "TRUE", "False"])
def test_the_call_for_labels_that_are_true_or_false_works(value):
    rows = [{"q": "?", "a": "x", "b": "y", "l": value}]
    named = {"prompt_column": "q", "first_column": "a", "second_column": "b", "label_column": "l"}
    with pytest.raises(RecordError) as refused:
        read(rows, **named)
    assert 'labels={"true": "left", "false": "right"}' in str(refused.value.do)
    (case,), _ = read(rows, **named, labels={"true": "left", "false": "right"})
    assert case.judgments[0].verdict == ("right" if value == "False" else "left")


def test_a_map_of_labels_comes_before_every_other_meaning():
    rows = [{"q": f"{value}", "x": "1", "y": "2", "w": value} for value in (0, 1, 2, "chosen", "?")]
    labels = {"0": "right", "1": "left", "2": "tie", "chosen": "left", "?": "none"}
    named = {"prompt_column": "q", "first_column": "x", "second_column": "y", "label_column": "w"}
    cases, counts = read(rows, **named, settings={"labels": labels})
    assert [case.judgments[0].verdict for case in cases] == ["right", "left", "tie", "left", "none"]
    assert counts.noted["labels '2' read as a tie"] == 1
    with pytest.raises(RecordError, match="unknown label 0"):
        read(rows, **named)


def test_an_empty_label_is_no_verdict_and_its_answers_stay():
    rows = [{"prompt": "q", "answer_1": "x", "answer_2": "y", "label": label} for label in ("1", "", None)]
    (case,), _counts = read(rows)
    assert [(vote.verdict, vote.reason) for vote in case.judgments] == [
        ("left", None), ("none", "no label"), ("none", "no label"),
    ]  # fmt: skip


def test_votes_in_columns_of_their_own_and_a_column_for_ties():
    rows = [
        {"p": str(number), "x": "a", "y": "b", "w_x": left, "w_y": right, "w_tie": tie}
        for number, (left, right, tie) in enumerate([(1, 0, 0), (0, 1, 0), (0, 0, 1), (0, 0, 0)])
    ]
    columns = {"prompt_column": "p", "first_column": "x", "second_column": "y"}
    cases, _ = read(rows, **columns, label_column=["w_x", "w_y"], tie_column="w_tie")
    assert [case.judgments[0].verdict for case in cases] == ["left", "right", "tie", "none"]


def test_the_name_of_a_model_is_a_label_of_its_answer():
    row = {"prompt": "q", "model_a": "m", "model_b": "n", "response_a": "x", "response_b": "y", "winner": "n"}
    (case,), _ = read([row])
    (vote,) = case.judgments
    authors = {response.id: response.author for response in case.responses}
    assert (vote.verdict, authors[vote.right]) == ("right", "n")


def turns(*parts):
    return [{"role": role, "content": text} for role, text in parts]


ANSWERS = [
    [{"question": "q", "model": "mn"[place], "answer": "xy"[place], "category": "c"} for place in range(2)],
    [{"question": "q", "answer_1": "x", "answer_2": "y", "category": "c"}],
    [{"prompt": "q", "responses": ["x", "y"], "category": "c"}],
    [{"prompt": "q", "responses": [{"text": "x", "model": "m"}, {"text": "y", "model": "n"}], "category": "c"}],
    [{"prompt": turns(("user", "q")), "completions": [turns(("assistant", "x")), "y"], "category": "c"}],
]  # fmt: skip


@pytest.mark.parametrize("rows", ANSWERS, ids=["long", "wide", "list", "objects", "turns"])
def test_answers_without_labels_are_the_responses_of_a_case(rows):
    (case,) = sy.Cases(rows)
    assert [response.text for response in case.responses] == ["x", "y"]
    assert (case.prompt.messages[-1].content, case.prompt.category) == ("q", ("c",))
    assert (case.judgments, case.ratings, case.ranking) == ((), (), None)


def test_columns_of_answers_that_are_named_have_their_names_as_authors():
    (case,), _ = read(
        [{"q": "1", "qwen": "x", "yi": "", "glm": "z"}], prompt_column="q", response_column=["qwen", "yi", "glm"]
    )
    assert [(response.author, response.text) for response in case.responses] == [("qwen", "x"), ("glm", "z")]


@pytest.mark.parametrize(
    "further", [{"ranking": [2, 1]}, {"scores": [1, 2]}, {"winner_of_all": "x"}, {"who won": "a"}, {"votes": {"x": 1}}]
)
def test_answers_beside_an_unknown_verdict_are_not_taken_for_answers_alone(further):
    with pytest.raises(KindError):
        read([{"prompt": "q", "responses": ["x", "y"], **further}])


def test_an_unknown_table_names_the_nearest_formats_and_a_command(tmp_path):
    file = tmp_path / "votes.csv"
    file.write_text("Anfrage,Text A,Text B,Wer?\nWas?,gut,schlecht,a\nWie?,x,y,tie\n", "utf-8")
    with pytest.raises(KindError) as caught:
        convert(file, tmp_path / "cases.jsonl")
    error = caught.value
    assert "first_column=Text A, second_column=Text B, label_column=Wer?, prompt_column=Anfrage" in str(error.do)
    assert len(str(error).splitlines()) == 3
    file.write_text("question,answer1,answer2,preferences\nq,x,y,0.5\n", "utf-8")
    with pytest.raises(KindError, match=r"allowed: \w+ \(here without [\w, ]+\); \w+ \(here without [\w, ]+\)"):
        convert(file, tmp_path / "cases.jsonl")


@pytest.mark.parametrize(
    "picture",
    [{"images": ["a.png"]}, {"prompt": "<image>图里有什么？"},
     {"prompt": [{"role": "user", "content": [*blocks("看"), {"type": "image_url", "image_url": {"url": "x"}}]}]}],
)  # fmt: skip
def test_rows_with_pictures_are_counted(picture):
    rows = [{"prompt": "q", "chosen": "x", "rejected": "y"}, {"prompt": "p", "chosen": "x", "rejected": "y"} | picture]
    _, counts = read(rows)
    assert counts.noted["rows with images, read as text alone"] == 1


@pytest.mark.parametrize("blank", ["", "  \n", "\u200b", "\u3164", "\u2800\u00a0"])
def test_answers_without_a_visible_character_are_counted(blank):
    _, counts = read(
        [{"prompt": "q", "chosen": blank, "rejected": "y"}, {"prompt": "p", "chosen": "x", "rejected": "\u200dy"}]
    )
    assert counts.noted["empty or blank responses"] == 1


def test_the_same_conversion_again_is_that_of_its_record(tmp_path, capsys):
    file, out = tmp_path / "s.jsonl", tmp_path / "o.jsonl"
    file.write_text('{"prompt": "q", "chosen": "x", "rejected": ""}\n')
    first = convert(file, out)
    record = tmp_path / "o.jsonl.run" / "run.json"
    # A count that no reading of the rows gives shows where the answer comes from.
    record.write_text(record.read_text().replace('"empty or blank responses": 1', '"empty or blank responses": 7'))
    assert convert(file, out) == first._replace(noted={"empty or blank responses": 7})
    assert "is written already" in capsys.readouterr().err
    with pytest.raises(OutputError, match="holds something else"):
        convert(file, out, Config(language="zh"))
    file.write_text('{"prompt": "p", "chosen": "x", "rejected": "y"}\n')
    with pytest.raises(OutputError, match="holds something else"):
        convert(file, out)


def test_judgments_have_their_time_and_batch():
    row = {
        "prompt": "q",
        "response_a": "x",
        "response_b": "y",
        "winner": "a",
        "annotator": 7,
        "created_at": "2026-01-01",
        "batch": 3,
    }
    (case,), _ = read([row])
    assert case.judgments[0] == Judgment(
        left=case.responses[0].id, right=case.responses[1].id, verdict="left", judge="7", kind="human", batch="3",
        meta={"label": "a", "time": "2026-01-01"},
    )  # fmt: skip


def test_arena_55k_has_lists_of_turns_as_json_text_and_a_column_for_each_vote():
    rows = [
        {"id": 1, "model_a": "m", "model_b": "n", "prompt": '["你好","再见"]', "response_a": '["好","走"]',
         "response_b": '["嗯",null]', "winner_model_a": 1, "winner_model_b": 0, "winner_tie": 0},
        {"id": 2, "model_a": "m", "model_b": "n", "prompt": '["q"]', "response_a": '["x"]',
         "response_b": '["y"]', "winner_model_a": 0, "winner_model_b": 0, "winner_tie": 1},
    ]  # fmt: skip
    (case, other), _counts = read(rows)
    assert [turn.content for turn in case.prompt.messages] == ["你好"]
    assert [[turn.content for turn in response.messages] for response in case.responses] == [
        ["好", "再见", "走"], ["嗯", "再见", ""],
    ]  # fmt: skip
    assert [response.author for response in case.responses] == ["m", "n"]
    assert (case.judgments[0].verdict, other.judgments[0].verdict) == ("left", "tie")
    assert list(texts(other).values()) == ["x", "y"]


def test_votes_of_comparia_name_the_model_or_are_equal():
    conversations = {f"conversation_{side}": turns(("user", "Pourquoi ?"), ("assistant", side)) for side in "ab"}
    rows = [
        {"id": number, "timestamp": "2025-10-14", "model_a_name": "m", "model_b_name": "n", "both_equal": equal,
         "chosen_model_name": chosen, "visitor_id": visitor, **conversations}
        for number, (chosen, equal, visitor) in enumerate(
            [("m", False, "v"), ("n", False, None), (None, True, "w"), (None, None, "v")])
    ]  # fmt: skip
    (case,), _counts = read(rows)
    assert [(vote.verdict, vote.judge) for vote in case.judgments] == [
        ("left", "v"), ("right", "unknown"), ("tie", "w"), ("none", "v"),
    ]  # fmt: skip
    assert (case.prompt.messages[0].content, list(texts(case).values())) == ("Pourquoi ?", ["a", "b"])


def test_zero_and_one_of_shp_are_its_second_and_first_answer():
    rows = [
        {
            "post_id": str(label),
            "history": f"q{label}",
            "human_ref_A": "x",
            "human_ref_B": "y",
            "labels": label,
            "score_A": 3,
        }
        for label in (1, 0)
    ]
    cases, _counts = read(rows)
    assert [case.judgments[0].verdict for case in cases] == ["left", "right"]


def test_comparisons_of_webgpt_have_a_score_for_each_answer():
    rows = [
        {"question": {"dataset": "eli5", "id": f"{score}", "full_text": f"为什么 {score}？"}, "quotes_0": {"title": []},
         "answer_0": "x", "tokens_0": {"prefix": []}, "score_0": score, "quotes_1": {"title": []}, "answer_1": "y",
         "tokens_1": {"prefix": []}, "score_1": 0.0 - score}
        for score in (0.5, -1.0, 0.0)
    ]  # fmt: skip
    cases, _counts = read(rows)
    assert [case.prompt.messages[0].content for case in cases] == ["为什么 0.5？", "为什么 -1.0？", "为什么 0.0？"]
    assert [[[texts(case)[name] for name in tier] for tier in case.ranking] for case in cases] == [
        [["x"], ["y"]], [["y"], ["x"]], [["x", "y"]],
    ]  # fmt: skip


@pytest.mark.parametrize(
    ("rows", "columns"),
    [
        ([{"问题": "光？", "responses": ["b", "a", "c"], "ranks": [2, 1, 2]}], ("问题", "responses", "ranks")),
        (
            [{"问题": "光？", "回答": text, "名次": rank} for text, rank in (("b", "2"), ("a", "1"), ("c", "2"))],
            ("问题", "回答", "名次"),
        ),
    ],
)
def test_ranks_are_numbers_of_which_the_lower_is_better(rows, columns):
    prompt, response, rank = columns
    with pytest.raises(KindError) as refused:
        read(rows)
    (case,) = eval(str(refused.value.do).rpartition("perhaps so: ")[2]).cases
    assert case.ranking is not None
    settings = {"prompt_column": prompt, "response_column": response, "rating_column": rank, "lower_is_better": True}
    (case,), _ = read(rows, **settings)
    assert [[texts(case)[name] for name in tier] for tier in case.ranking] == [["a"], ["b", "c"]]
    assert [rating.value for rating in case.ratings] == [-2, -1, -2]


def test_the_call_for_labels_in_numbers_works():
    rows = [{"question": "q", "answer_a": "x", "answer_b": "y", "label": value} for value in (1, 0)]
    with pytest.raises(KindError) as refused:
        read(rows)
    (case,) = eval(str(refused.value.do).rpartition("perhaps so: ")[2]).cases
    assert [judgment.verdict for judgment in case.judgments] == ["left", "right"]


def test_best_of_k_sets_of_ppe_have_a_list_of_scores():
    answers = {f"response_{number}": f"a{number}" for number in range(1, 5)}
    row = {"question_id": "q", "prompt": "p", **answers, "scores": [True, False, True, False],
           "sampled_conflict_pairs": [[0, 1]], "model_name": "m"}  # fmt: skip
    (case,), _counts = read([row])
    assert [rating.value for rating in case.ratings] == [1, 0, 1, 0]
    assert [[texts(case)[name] for name in tier] for tier in case.ranking] == [["a1", "a3"], ["a2", "a4"]]


PUBLISHED = {
    "PPE": ({"question_id": "q", "model_a": "m", "model_b": "n", "winner": "model_b", "language": "Chinese",
             "prompt": "p", "response_1": "x", "response_2": "y"}, "right"),
    "JudgeBench": ({"pair_id": "1", "original_id": "2", "source": "s", "question": "p", "response_model": "m",
                    "response_A": "x", "response_B": "y", "label": "B>A"}, "right"),
    "Label Studio": ({"annotation_id": "1", "annotator": "a@b.c", "answer1": "x", "answer2": "y", "comparison": "left",
                      "created_at": "2025-03-05T00:00:00Z", "id": "8", "lead_time": "3.1", "prompt": "p",
                      "updated_at": "2025-03-05T00:00:00Z"}, "left"),
}  # fmt: skip


@pytest.mark.parametrize("name", PUBLISHED)
def test_published_votes_are_known_by_their_columns(name):
    row, verdict = PUBLISHED[name]
    (case,), _counts = read([row])
    assert (case.judgments[0].verdict, list(texts(case).values())) == (verdict, ["x", "y"])
    assert case.prompt.messages[0].content == "p"


def test_votes_of_mt_bench_on_one_question_are_one_case_and_the_first_turn_ends_with_its_answer():
    rows = [
        {"question_id": 81, "model_a": "m", "model_b": other, "winner": winner, "judge": judge, "turn": turn,
         **{f"conversation_{side}": turns(("user", "写诗"), ("assistant", text), ("user", "再来"), ("assistant", "2"))
            for side, text in (("a", "海"), ("b", other))}}
        for other, winner, judge, turn in [("n", "model_a", "e1", 1), ("n", "model_b", "e2", 1), ("k", "tie", "e1", 2)]
    ]  # fmt: skip
    (case,), counts = read(rows)
    assert (counts.from_kind, case.prompt.id) == ("chatbot_arena", "81")
    assert [(response.author, response.text) for response in case.responses] == [
        ("m", "海"), ("n", "n"), ("m", None), ("k", None),
    ]  # fmt: skip
    assert [(vote.verdict, vote.judge) for vote in case.judgments] == [("left", "e1"), ("right", "e2"), ("tie", "e1")]


def test_annotations_of_alpaca_farm_have_their_input_in_the_prompt():
    rows = [
        {"instruction": "Summarise.", "input": text, "output_1": "a", "output_2": "b", "preference": 1}
        for text in ("one", "two", "")
    ]
    cases, counts = read(rows)
    assert counts.from_kind == "alpaca_eval"
    assert [case.prompt.messages[0].content for case in cases] == ["Summarise.\none", "Summarise.\ntwo", "Summarise."]


def test_lists_and_numbers_in_the_cells_of_a_table_without_types(tmp_path):
    file = tmp_path / "own.csv"
    file.write_text('question,responses,scores\nq,"[""x"", ""y""]","[1, 2.5]"\n', "utf-8")
    with pytest.raises(KindError) as caught:
        convert(file, tmp_path / "cases.jsonl")
    assert "prompt_column=question, response_column=responses, rating_column=scores" in str(caught.value.do)
    columns = {"prompt_column": "question", "response_column": "responses", "rating_column": "scores"}
    (case,) = sy.convert(file, **columns).cases
    assert [[texts(case)[name] for name in tier] for tier in case.ranking] == [["y"], ["x"]]
    row = {"question": "q", "answer": '["x", "y"]', "model": "m"}
    (case,), _ = read([row])
    assert list(texts(case).values()) == ['["x", "y"]']


def test_a_time_in_a_text_is_a_number():
    rows = [
        {"prompt": "q", "response_a": "x", "response_b": "y", "winner": "a", "judge": "j", "timestamp": "1682351591.5"}
    ]
    (case,), _counts = read(rows)
    assert case.judgments[0].meta["time"] == 1682351591.5


def test_pairs_of_a_judge_are_judgments_for_the_better_answer():
    rows = [
        {"prompt": "q", "chosen": "x", "rejected": "y", "annotator": "a"},
        {"prompt": "q", "chosen": "y", "rejected": "x", "annotator": "b"},
    ]
    (case,), _ = read(rows, judge_column="annotator")
    winners = [(vote.judge, texts(case)[vote.left], vote.verdict) for vote in case.judgments]
    assert (winners, len(case.responses)) == ([("a", "x", "left"), ("b", "y", "left")], 2)
