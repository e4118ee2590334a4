"""A table of the user's own: pairs, labels and ratings under any columns, in text of all kinds."""

import csv
import json
from collections import Counter

import pyarrow
import pyarrow.parquet
import pytest

from steelyard.core.checks import check_case
from steelyard.core.errors import ConfigError, Place, RecordError
from steelyard.core.plugins import build
from steelyard.core.protocols import Row
from steelyard.io.cases import read_cases
from steelyard.stages.convert import Config, convert

PAIRS = {"prompt_column": "question", "chosen_column": "good", "rejected_column": "bad"}
VOTES = {"first_column": "a", "second_column": "b", "label_column": "winner"}
SCORES = {"response_column": "text", "rating_column": "score"}
TEXTS = ("用一句话解释“递归”。", 'ترجم "سلام"، من فضلك', "two\nlines, and a comma\r\nmore", "it's a \t tab 🙂")


def table(path, rows):
    """Write rows as the kind of file that the name says."""
    if path.suffix in (".csv", ".tsv"):
        with path.open("w", encoding="utf-8", newline="") as file:
            writer = csv.DictWriter(file, rows[0], delimiter="\t" if path.suffix == ".tsv" else ",")
            writer.writeheader()
            writer.writerows(rows)
    elif path.suffix == ".parquet":
        pyarrow.parquet.write_table(pyarrow.Table.from_pylist(rows), path)
    else:
        path.write_text("".join(json.dumps(row, ensure_ascii=False) + "\n" for row in rows), encoding="utf-8")
    return path


def converted(tmp_path, rows, settings, name="own.jsonl", **more):
    done = convert(
        table(tmp_path / name, rows), tmp_path / "cases.jsonl", Config(from_kind="columns", settings=settings, **more)
    )
    return done, list(read_cases(tmp_path / "cases.jsonl"))


def back(tmp_path, settings):
    done = convert(tmp_path / "cases.jsonl", tmp_path / "back.jsonl", Config(to_kind="columns", settings=settings))
    return done, [json.loads(line) for line in (tmp_path / "back.jsonl").read_text("utf-8").split("\n") if line]


def read(rows, settings, warnings=None):
    placed = [Row(Place("f", number), row) for number, row in enumerate(rows, 1)]
    cases = list(build("formats", "columns", settings).read(placed, Counter() if warnings is None else warnings))
    return [check_case(case) for case in cases]


def written(cases, settings):
    dropped = Counter()
    return list(build("formats", "columns", settings).write(cases, dropped)), dropped


def texts(case):
    return {response.id: response.text for response in case.responses}


@pytest.mark.parametrize("suffix", [".csv", ".tsv", ".jsonl", ".parquet"])
def test_pairs_of_every_kind_of_table_come_in_and_go_back(suffix, tmp_path):
    rows = [{"question": f"{text}?", "good": text, "bad": f"{text} not", "from": "me"} for text in TEXTS]
    done, cases = converted(tmp_path, rows, PAIRS, f"own{suffix}")
    assert (done.from_kind, done.num_rows, done.num_cases) == ("columns", 4, 4)
    for case, text in zip(cases, TEXTS, strict=True):
        ((better,), (worse,)) = case.ranking
        assert (case.prompt.messages[-1].content, texts(case)[better], texts(case)[worse]) == (
            f"{text}?",
            text,
            f"{text} not",
        )
        assert case.prompt.meta == {"from": "me"}
    assert back(tmp_path, PAIRS)[1] == rows


def test_pairs_of_one_prompt_are_joined_and_come_back_with_their_ids(tmp_path):
    settings = {**PAIRS, "id_column": "nr", "language_column": "lang", "category_column": "kind"}
    rows = [
        {"nr": 7, "question": "q", "good": "x", "bad": "y", "lang": "Chinese", "kind": "logic"},
        {"nr": 8, "question": "other", "good": "x", "bad": "y", "lang": "", "kind": None},
        {"nr": 9, "question": "q", "good": "y", "bad": "z", "lang": "Chinese", "kind": "logic"},
    ]
    done, (case, other) = converted(tmp_path, rows, settings)
    assert (done.num_rows, done.num_cases) == (3, 2)
    assert (case.prompt.id, case.prompt.language, case.prompt.category) == ("7", "zh", ("logic",))
    assert (other.prompt.id, other.prompt.language, other.prompt.category) == ("8", None, ())
    assert [[texts(case)[name] for name in tier] for tier in case.ranking] == [["x"], ["y"], ["z"]]
    done, again = back(tmp_path, settings)
    assert again == [rows[0], rows[2], rows[1]]
    assert not {"language", "category", "prompt ids"} & done.lost.keys()


@pytest.mark.parametrize(
    ("label", "verdict"),
    [(1, "left"), ("1", "left"), (1.0, "left"), ("1.0", "left"), ("A", "left"), (" left ", "left"), ("First", "left"),
     (2, "right"), ("b", "right"), ("RIGHT", "right"), ("second", "right"), ("tie", "tie"), ("Equal", "tie"),
     ("same", "tie"), ("答一", "left"), ("答二", "right")],
)  # fmt: skip
def test_a_label_says_which_of_two_answers_is_better(label, verdict):
    settings = {"first_column": "答一", "second_column": "答二", "label_column": "w"}
    row = {"prompt": "问", "答一": "好", "答二": "坏", "w": label}
    (case,) = read([row], settings)
    (judgment,) = case.judgments
    assert (texts(case)[judgment.left], texts(case)[judgment.right], judgment.verdict) == ("好", "坏", verdict)
    assert (judgment.judge, judgment.kind, case.ranking) == ("unknown", "human", None)


@pytest.mark.parametrize(
    ("names", "label", "verdict"),
    [
        (("回答一", "回答二"), "回答二更好", "right"),
        (("回答一", "回答二"), "回答一优于回答二", "left"),
        (("甲", "乙"), "甲更好", "left"),
        (("x", "y"), "A est meilleure", "left"),
        (("x", "y"), "回答Bの方が良い", "right"),
        (("Ответ А", "Ответ Б"), "Ответ Б лучше", "right"),
        (("الجواب الأول", "الجواب الثاني"), "الأول أفضل", "left"),
        (("x", "y"), "٢", "right"),
        (("x", "y"), "१", "left"),
        (("response_b", "response_a"), "model_a", "right"),
        (("response_b", "response_a"), "A is better", "right"),
        (("回答一", "回答二"), "回答一不好", None),
        (("回答一", "回答二"), "回答二较差", None),
        (("x", "y"), "A is not better", None),
        (("x", "y"), "٠", None),
    ],
)
def test_a_sentence_on_the_answers_is_a_label(names, label, verdict):
    row = {"prompt": "q", names[0]: "one", names[1]: "two", "winner": label}
    settings = {"first_column": names[0], "second_column": names[1], "label_column": "winner"}
    if verdict is None:
        with pytest.raises(RecordError, match="unknown label"):
            read([row], settings)
        return
    (case,) = read([row], settings)
    assert case.judgments[0].verdict == verdict


def test_no_meaning_is_proposed_for_one_unknown_label():
    with pytest.raises(RecordError) as caught:
        read([{"prompt": "q", "a": "one", "b": "two", "winner": "dunno"}], VOTES)
    assert "labels.dunno=…" in str(caught.value)


def test_the_name_of_a_column_is_the_label_of_its_answer():
    settings = {"first_column": "b", "second_column": "a", "label_column": "w"}
    (case,) = read([{"prompt": "q", "b": "x", "a": "y", "w": "a"}], settings)
    (judgment,) = case.judgments
    assert judgment.verdict == "right"
    assert texts(case)[judgment.right] == "y"


@pytest.mark.parametrize("label", ["0", 0, 3, "c", True, "both fine", [1, 2], ["c"]])
def test_an_unknown_label_is_refused_with_its_line_and_the_allowed_ones(label):
    rows = [{"prompt": "q", "a": "x", "b": "y", "winner": value} for value in ("1", label)]
    with pytest.raises(RecordError, match=r"^f:2 at winner: unknown label") as caught:
        read(rows, VOTES)
    assert "1, a, left, first; 2, b, right, second; tie, equal, same" in str(caught.value)
    assert ("labels.1=left, labels.0=right" in str(caught.value)) == (label in (0, "0"))


def test_labels_of_one_prompt_are_one_case_wherever_their_rows_are(tmp_path):
    settings = {**VOTES, "id_column": "nr"}
    rows = [
        {"prompt": "一", "a": "x", "b": "y", "winner": "a", "nr": "r1", "note": "Li"},
        {"prompt": "二", "a": "x", "b": "y", "winner": "b", "nr": "r2", "note": "Li"},
        {"prompt": "一", "a": "y", "b": "z", "winner": "tie", "nr": "r3", "note": "Wu"},
        {"prompt": "一", "a": "z", "b": "z", "winner": "1", "nr": "r4", "note": "Wu"},
    ]
    done, (case, other) = converted(tmp_path, rows, settings, "own.tsv")
    assert (done.num_rows, done.num_cases) == (4, 2)
    assert list(texts(case).values()) == ["x", "y", "z", "z"]
    assert [judgment.verdict for judgment in case.judgments] == ["left", "tie", "left"]
    assert (case.prompt.id, other.prompt.id) == ("r1", "r2")


def test_an_answer_has_the_rank_of_its_ratings_and_higher_is_better(tmp_path):
    rows = [
        {"prompt": "一", "text": "中", "score": "3", "note": "m1"},
        {"prompt": "二", "text": "only", "score": "2.5", "note": "m1"},
        {"prompt": "一", "text": "好", "score": "4.5", "note": "m2"},
        {"prompt": "一", "text": "也中", "score": "3.0", "note": "m3"},
        {"prompt": "一", "text": "没有", "score": "", "note": "m4"},
    ]
    done, (case, single) = converted(tmp_path, rows, SCORES, "own.csv")
    assert [[texts(case)[name] for name in tier] for tier in case.ranking] == [["好"], ["中", "也中"]]
    assert {(texts(case)[rating.response], rating.value) for rating in case.ratings} == {
        ("好", 4.5),
        ("中", 3),
        ("也中", 3),
    }
    assert {(rating.dimension, rating.rater, rating.kind) for rating in case.ratings} == {("score", "unknown", "human")}
    assert (single.ranking, [rating.value for rating in single.ratings]) == (None, [2.5])
    assert (done.num_rows, done.num_cases, done.noted) == (5, 2, {})


def test_several_ratings_of_an_answer_count_by_their_mean(tmp_path):
    rows = [
        {"prompt": "q", "text": text, "score": score, "rater": rater}
        for text, score, rater in (("x", 1, "Li"), ("y", 2, "Li"), ("x", 4, "Wu"), ("y", 2, "Wu"))
    ]
    done, (case,) = converted(tmp_path, rows, SCORES)
    assert [[texts(case)[name] for name in tier] for tier in case.ranking] == [["x"], ["y"]]  # 2.5 over 2
    assert done.noted["rows of an answer beyond its first"] == 2
    assert {(rating.rater, rating.value) for rating in case.ratings} == {("Li", 1), ("Li", 2), ("Wu", 4), ("Wu", 2)}


@pytest.mark.parametrize("score", ["good", "nan", "inf", True, [1]])
def test_a_rating_that_is_not_a_number_is_refused_with_its_line(score):
    with pytest.raises(RecordError, match=r"^f:1 at score: .* is not a number"):
        read([{"prompt": "q", "text": "x", "score": score}], SCORES)


@pytest.mark.parametrize(
    ("text", "number"),
    [("4,5", 4.5), ("-0,125", -0.125), ("1234,567", 1234.567), ("2,3333", 2.3333), ("４．５", 4.5), ("٤٫٥", 4.5),
     ("３", 3), ("۲", 2), (" 1 ", 1)],
)  # fmt: skip
def test_a_rating_is_read_as_its_country_writes_it(text, number, tmp_path):
    rows = [{"prompt": "Größe?", "text": "ja", "score": text}]
    _, (case,) = converted(tmp_path, rows, SCORES)
    assert [rating.value for rating in case.ratings] == [number]


@pytest.mark.parametrize("text", ["1,234", "-12,345", "1,234,567"])
def test_a_comma_that_may_divide_thousands_is_refused_with_the_two_readings(text):
    whole = text.lstrip("-").replace(",", "")
    with pytest.raises(RecordError, match=f"'{text}' is not a number\n.*\n.*with a point, or .*: {whole}$"):
        read([{"prompt": "q", "text": "x", "score": text}], SCORES)


def test_cells_can_hold_turns(tmp_path):
    rows = [
        {
            "prompt": [{"role": "system", "content": "短。"}, {"role": "user", "content": "问"}],
            "text": [{"role": "assistant", "content": name}, {"role": "user", "content": "再"},
                     {"role": "assistant", "content": "好"}],
            "score": score,
        }
        for name, score in (("x", 1.0), ("y", 2.0))
    ]  # fmt: skip
    _, (case,) = converted(tmp_path, rows, SCORES)
    assert [turn.role for turn in case.prompt.messages] == ["system", "user"]


def test_a_column_that_the_file_lacks_is_named_with_the_nearest():
    row = {"prompt": "q", "gut": "x", "bad": "y", "lang": "zh"}
    with pytest.raises(RecordError, match=r"^f:1: no column 'goot'") as caught:
        read([row], {"chosen_column": "goot", "rejected_column": "bad"})
    assert "did you mean 'gut'? bad, gut, lang, prompt" in str(caught.value)
    with pytest.raises(RecordError, match=r"^f: no column 'language' in any row") as caught:
        read([row], {"chosen_column": "gut", "rejected_column": "bad", "language_column": "language"})
    assert "did you mean 'lang'?" in str(caught.value)


def test_an_optional_column_may_be_absent_from_a_row_but_not_from_all():
    rows = [{"prompt": "p", "chosen": "x", "rejected": "y"}, {"prompt": "q", "chosen": "x", "rejected": "y", "l": "ar"}]
    assert [case.prompt.language for case in read(rows, {"language_column": "l"})] == [None, "ar"]


@pytest.mark.parametrize(
    ("cells", "column"),
    [({"lang": "klingon!"}, "lang"), ({"nr": 1.5}, "nr"), ({"kind": 3}, "kind")],
)
def test_a_cell_that_is_no_id_language_or_category_is_refused(cells, column):
    settings = {"id_column": "nr", "language_column": "lang", "category_column": "kind"}
    row = {"prompt": "q", "chosen": "x", "rejected": "y", "nr": "1", "lang": "zh", "kind": "k"} | cells
    with pytest.raises(RecordError, match=f"^f:1 at {column}: "):
        read([row], settings)


@pytest.mark.parametrize(
    ("settings", "problem"),
    [
        ({"chosen_column": "x", "label_column": "y"}, "chosen_column, label_column contradict each other"),
        ({"chosen_column": "x"}, "pairs need rejected_column too"),
        ({"first_column": "x", "label_column": "y"}, "labelled pairs need second_column too"),
        ({"rating_column": "x"}, "ratings need response_column too"),
        ({"chosen_column": "x", "rejected_column": "x"}, "chosen_column and rejected_column are both 'x'"),
        ({"prompt_column": "x", "id_column": "x"}, "prompt_column and id_column are both 'x'"),
    ],
)
def test_columns_that_contradict_each_other_are_refused_before_reading(settings, problem, tmp_path):
    with pytest.raises(ConfigError, match=problem):
        convert(tmp_path / "absent.csv", tmp_path / "o.jsonl", Config(from_kind="columns", settings=settings))


def test_one_id_for_two_prompts_of_labels_is_refused():
    rows = [{"prompt": text, "a": "x", "b": "y", "winner": "1", "nr": "1"} for text in ("p", "q")]
    with pytest.raises(RecordError, match=r"^f:2: id '1' is already used at f:1\n  allowed: one id for one prompt"):
        read(rows, {**VOTES, "id_column": "nr"})


@pytest.mark.parametrize(
    "history",
    [
        [["before", "so"]],
        json.dumps([["before", "so"]]),
        [{"role": "user", "content": "before"}, {"role": "assistant", "content": "so"}],
    ],
)
def test_earlier_turns_stand_before_the_prompt(history):
    settings = PAIRS | {"history_column": "history", "system_column": "system"}
    rows = [
        {"system": "s", "history": history, "question": "q", "good": "a", "bad": "b"},
        {"system": None, "history": [], "question": "r", "good": "a", "bad": "b"},
    ]
    long, short = read(rows, settings)
    assert [turn.content for turn in long.prompt.messages] == ["s", "before", "so", "q"]
    assert [turn.role for turn in long.prompt.messages] == ["system", "user", "assistant", "user"]
    assert [turn.content for turn in short.prompt.messages] == ["r"]
    assert written([long, short], settings)[0] == rows


@pytest.mark.parametrize("history", ["before", [["q"]], [["q", 1]], {"q": "a"}])
def test_a_history_of_another_form_is_refused_with_its_line(history):
    rows = [{"history": history, "question": "q", "good": "a", "bad": "b"}]
    with pytest.raises(RecordError, match=r"^f:1 at history"):
        read(rows, PAIRS | {"history_column": "history"})


def test_numbers_have_the_meanings_of_the_user_alone():
    settings = VOTES | {"labels": {"-1": "left"}}
    row = {"prompt": "q", "a": "x", "b": "y"}
    assert read([row | {"winner": -1}], settings)[0].judgments[0].verdict == "left"
    with pytest.raises(RecordError, match="unknown label 1"):
        read([row | {"winner": 1}], settings)
    scale = r"labels\.-2=left, labels\.-1=left, labels\.0=tie, labels\.1=right, labels\.2=right"
    with pytest.raises(RecordError, match=scale):
        read([row | {"winner": "-2"}], VOTES)


def test_the_unnamed_first_column_of_a_spreadsheet_is_the_id(tmp_path):
    rows = [{"": number, "question": text, "good": "yes", "bad": "no"} for number, text in enumerate(TEXTS)]
    table(tmp_path / "own.csv", rows)
    convert(
        tmp_path / "own.csv", tmp_path / "out.jsonl", Config(from_kind="columns", settings={**PAIRS, "id_column": ""})
    )
    assert [case.prompt.id for case in read_cases(tmp_path / "out.jsonl")] == ["0", "1", "2", "3"]
