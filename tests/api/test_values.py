"""Cases, tables, estimates and figures as values: from memory and back without a change, and shown in notebooks."""

import enum
import json
import re

import numpy as np
import pyarrow
import pytest
from hypothesis import given
from msgspec.structs import replace

import steelyard as sy
from parallel_cases import parallel_cases
from steelyard.core.errors import RecordError
from steelyard.core.types import Response
from steelyard.io.cases import write_cases
from strategies import case, cases, judgment


class Stream:
    """A table of a library that has nothing but the Arrow interface."""

    def __init__(self, table):
        self.table = table

    def __iter__(self):
        """Yield columns, as data frames do."""
        return iter(self.table.columns)

    def __arrow_c_stream__(self, requested_schema=None):
        return self.table.__arrow_c_stream__(requested_schema)


class Dataset:
    """A dataset as Hugging Face has it: its Arrow format gives the rows that are selected."""

    def __init__(self, table, rows):
        self.table, self.rows = table, rows

    def with_format(self, type):
        assert type == "arrow"
        return self

    def __getitem__(self, key):
        assert key == slice(None)
        return self.table.take(self.rows)


HOSTILE = case(
    "\u0645\u0631\u062d\u0628\u0627 \u202e",
    "ab",
    [judgment("a>b", "ann", meta={"note": None, "deep": {"x": [1, None]}}, shown=("a", "b"))],
    text="<script>alert(1)</script> 你好 שלום हिन्दी 日本語 $x^2$ `code`",
    category=("safety", "injection"),
    language="ar",
    ranking=(("a",), ("b",)),
    meta={"rows": "1"},
    ratings=(
        sy.Rating(
            response="a", rater="r", kind="llm", dimension="d", value=0.1, range=(0, 1), spans=((0, 2, "x", None),)
        ),
    ),
)


@given(cases())
def test_cases_survive_every_form(drawn):
    collection = sy.Cases([drawn])
    for form in (
        collection.to_dicts(),
        collection.to_arrow(),
        Stream(collection.to_arrow()),
        collection,
        iter([drawn]),
    ):
        assert list(sy.Cases(form)) == [drawn]


def test_hostile_text_survives_every_form_and_does_not_run_in_a_notebook():
    collection = sy.Cases([HOSTILE])
    for form in (collection.to_dicts(), Stream(collection.to_arrow()), json.loads(json.dumps(collection.to_dicts()))):
        assert sy.Cases(form)[0] == HOSTILE
    page = collection._repr_html_()
    assert "<script>" not in page
    assert "&lt;script&gt;alert(1)&lt;/script&gt; 你好" in page
    assert 'dir="auto"' in page


def test_a_file_is_what_is_saved(tmp_path):
    for name in ("cases.jsonl", "cases.parquet"):
        assert sy.Cases([HOSTILE]).save(tmp_path / name) == 1
        assert sy.read_cases(tmp_path / name)[0] == HOSTILE


def test_rows_of_pairs_become_a_case_for_each_prompt_and_come_back():
    rows = [
        {"prompt": "Why?", "chosen": "Because.", "rejected": "No."},
        {"prompt": "Why?", "chosen": "Because.", "rejected": "Dunno."},
        {"prompt": "How?", "chosen": "So.", "rejected": "Not."},
    ]
    for form in (rows, pyarrow.Table.from_pylist(rows), Stream(pyarrow.Table.from_pylist(rows))):
        read = sy.Cases(form)
        assert [len(one.responses) for one in read] == [3, 2]
        assert read.to_pairs(texts=True) == rows
    assert sy.Cases(Dataset(pyarrow.Table.from_pylist(rows), [2]))[0].prompt.messages[0].content == "How?"


def test_rows_may_hold_values_of_numpy_and_bytes_of_text():
    row = {"prompt": "问".encode(), "responses": np.array(["甲", "乙"]), "scores": np.array([1, 2.5])}
    named = {"prompt_column": "prompt", "response_column": "responses", "rating_column": "scores"}
    (one,) = sy.convert([row], **named).cases
    assert one.prompt.messages[0].content == "问"
    assert [(response.text, rating.value) for response, rating in zip(one.responses, one.ratings, strict=True)] == [
        ("甲", 1),
        ("乙", 2.5),
    ]
    (voted,) = sy.convert([{"prompt": "q", "response_a": "x", "response_b": "y", "winner": np.int64(2)}]).cases
    assert voted.judgments[0].verdict == "right"


class Language(enum.StrEnum):
    CHINESE = "zh"


def test_texts_of_classes_of_their_own_are_texts():
    row = {"prompt": np.str_("问"), "chosen": np.str_("甲"), "rejected": "乙", "language": Language.CHINESE}
    (one,) = sy.Cases([row])
    assert one.prompt.messages[0].content == "问"
    assert one.responses[0].text == "甲"
    (converted,) = sy.convert([row], language_column="language").cases
    assert converted.prompt.language == "zh"


@pytest.mark.parametrize("source", [None, 5, b"cases.jsonl", {"prompt": ["q"], "chosen": ["a"], "rejected": ["b"]}])
def test_what_holds_no_cases_is_a_wrong_argument(source):
    with pytest.raises(sy.errors.ConfigError, match=f"source is {type(source).__name__ if source else None}"):
        sy.Cases(source)


def test_a_column_of_a_table_is_no_table():
    with pytest.raises(sy.errors.ConfigError, match="Column holds no named columns"):
        sy.Cases(Column())


class Column:
    """One column of a data frame: an Arrow stream without names."""

    def __arrow_c_stream__(self, requested_schema=None):
        return pyarrow.chunked_array([["q", "r"]]).__arrow_c_stream__(requested_schema)


def test_settings_may_be_numbers_of_numpy():
    data = sy.Cases([{"prompt": f"q{place}", "chosen": "a", "rejected": "b"} for place in range(4)])
    parts = {"train": np.float64(0.5), "test": np.float32(0.5)}
    run = sy.split(data, parts=parts, seed=np.int64(3))
    assert run.summary.parts == sy.split(data, parts={"train": 0.5, "test": 0.5}, seed=3).summary.parts
    with pytest.raises(sy.errors.ConfigError, match=r"seed is 2\.5"):
        sy.split(data, seed=np.float64(2.5))


@pytest.mark.parametrize(("value", "problem"), [("a\ud83d", "half of a character"), (object(), "type object")])
def test_a_value_that_a_file_could_not_hold_is_refused_with_its_row(value, problem):
    rows = [{"prompt": "q", "chosen": "x", "rejected": "y"}, {"prompt": "q", "chosen": value, "rejected": "y"}]
    with pytest.raises(RecordError, match=rf":2: .*{problem}"):
        sy.convert(rows)


def test_pairs_are_those_across_tiers_where_none_are_listed():
    ranked = case("p", "abc", ranking=(("a",), ("b", "c")))
    pairs = sy.Cases([ranked, case("q")]).to_pairs(texts=True)
    assert [(row["chosen"], row["rejected"]) for row in pairs] == [("answer a", "answer b"), ("answer a", "answer c")]


def test_columns_of_no_known_format_are_named():
    with pytest.raises(
        sy.errors.KindError, match=r"cases: no known format has these fields \(fields bad, good\)"
    ) as raised:
        sy.Cases([{"good": "a", "bad": "b"}])
    assert 'sy.convert(cases, chosen_column="good", rejected_column="bad")' in str(raised.value)
    with pytest.raises(sy.errors.RecordError, match="cases:2: a value of type int"):
        sy.Cases([{"prompt": "a"}, 3])
    with pytest.raises(sy.errors.RecordError, match="cases:1"):
        sy.Cases([{"prompt": {"id": "p", "messages": []}, "responses": [{"id": "a"}]}])


def test_cases_are_a_list():
    collection = parallel_cases()
    assert collection[1:3] == sy.Cases([collection[1], collection[2]])
    assert [one.prompt.language for one in collection.filter(lambda one: one.prompt.id == "p3")] == ["zh", "en"]
    assert collection.find("p3", "en").key == ("p3", "en")
    with pytest.raises(sy.errors.EvidenceError, match="2 cases have the prompt id 'p3'"):
        collection.find("p3")
    assert repr(sy.Cases()) == "Cases(none)"
    assert "… 35 more" in collection._repr_html_()


def test_an_estimate_is_a_number_only_where_it_has_a_value():
    measured = sy.Estimate(0.7071, 0.65, 0.757, 60)
    assert repr(measured) == "0.707 [0.650, 0.757] (n=60)"
    assert (float(measured), f"{measured:.1%}", measured > 0.5, measured <= 0.5) == (0.7071, "70.7%", True, False)
    assert f"{measured}" == repr(measured)
    missing = sy.Estimate(None, None, None, 4, why="no pair is left")
    assert repr(missing) == "none (n=4; no pair is left)"
    for use in (float, lambda value: value > 0.5, lambda value: f"{value:.2f}", lambda value: value > 0.5, sorted):
        with pytest.raises(sy.errors.EvidenceError, match="there is no value: no pair is left"):
            use([missing, measured] if use is sorted else missing)


def test_a_headline_without_its_parts_says_why(tmp_path):
    write_cases(tmp_path / "open.jsonl", [case("p", "ab", ranking=(("a",), ("b",)), subset="open_prompt")])
    evaluation = sy.evaluate("longer", tmp_path / "open.jsonl", bench_kind="cheemsbench")
    with pytest.raises(
        sy.errors.EvidenceError, match=r"there is no value: missing open_prompt .1 prompt, expected 1,146"
    ):
        float(evaluation.overall)


def test_tables_are_arrow_tables():
    evaluation = sy.evaluate("longer", parallel_cases())
    table = pyarrow.table(evaluation)
    assert table.column_names == list(evaluation.table.columns)
    assert sy.evaluate("longer", Stream(parallel_cases().to_arrow())).summary == evaluation.summary
    first = evaluation.to_dicts()[0]
    assert (first["by"], first["name"], first["accuracy"], first["accuracy_n"]) == ("model", "longer", 1.0, 40)
    assert {row["name"] for row in evaluation.table if row["by"] == "language"} == {"en", "zh"}
    items = pyarrow.table(evaluation.items)
    assert json.loads(items["scores"][0].as_py()) == {"a": 20.0, "b": 5.0}
    assert items.num_rows == 40
    assert pyarrow.table(sy.score("longer", parallel_cases())).column("score").to_pylist()[:2] == [20.0, 5.0]
    resolved = sy.resolve(parallel_cases())
    assert {row["by"] for row in resolved.table} == {"all", "judge", "kind", "category", "language"} - {None}
    assert "<td" in resolved._repr_html_()


def test_a_figure_is_that_of_the_report_with_colours_and_words():
    evaluation = sy.evaluate("longer", parallel_cases())
    chart = evaluation.plot()
    text = json.dumps(chart.spec)
    assert "var(--" not in text
    assert "@@" not in text
    values = [
        value for layer in chart.spec["layer"] for value in layer["data"]["values"] if value.get("row") == "longer"
    ]
    assert {value["value"] for value in values} == {1.0}
    assert chart.svg().startswith("<svg")
    bundle = chart._repr_mimebundle_()
    assert bundle["application/vnd.vegalite.v5+json"] == chart.spec
    assert "准确率" in json.dumps(evaluation.plot(language="zh").spec, ensure_ascii=False)
    with pytest.raises(sy.errors.EvidenceError, match="no figure has the title 'Nothing'"):
        evaluation.plot("Nothing")
    with pytest.raises(sy.errors.EvidenceError, match=r"has no figure of this run\n  do: read its tables: \.table"):
        sy.leaderboard([evaluation, sy.evaluate("shorter", parallel_cases())]).plot()


def test_a_figure_is_written_by_its_suffix(tmp_path):
    chart = sy.evaluate("longer", parallel_cases()).plot()
    for name, start in (("a.svg", b"<svg"), ("a.png", b"\x89PNG"), ("a.json", b"{")):
        chart.save(tmp_path / name)
        assert (tmp_path / name).read_bytes().startswith(start)
    with pytest.raises(sy.errors.OutputError, match=r"allowed: \.svg, \.png, \.json"):
        chart.save(tmp_path / "a.gif")


@pytest.mark.parametrize("function", [sy.evaluate, sy.score])
def test_cases_in_the_place_of_the_model_are_told_apart(function):
    with pytest.raises(
        sy.errors.ConfigError, match="model is there twice: the argument without a keyword is model"
    ) as caught:
        function([case()], model="longer")
    assert f"give keywords for both: {function.__name__}(model=..., " in str(caught.value)


def test_tables_of_two_results_have_labels_of_their_own():
    made = [
        replace(
            case(f"p{number}", "ab", ranking=(("a",), ("b",))),
            responses=(Response(id="a", text="long " * (number + 1)), Response(id="b", text="x")),
        )
        for number in range(6)
    ]
    texts = [sy.evaluate(model, made, num_resamples=20).to_latex() for model in ("longer", "shorter", "longer")]
    first, other, again = (re.findall(r"\\label\{(.*?)\}", text) for text in texts)
    assert len({*first, *other}) == len(first) + len(other)
    assert first == again, "a result that is computed again keeps its labels"
