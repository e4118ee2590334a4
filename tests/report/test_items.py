import base64
import gzip

import msgspec
import numpy as np

from evaluation_summaries import scored_item
from report_runs import item_rows, made_cases
from steelyard.core.types import Message, Response
from steelyard.evaluation.failures import PromptErrors
from steelyard.evaluation.items import ScoredItem
from steelyard.report.items import (
    ErrorMarks,
    JoinedItems,
    detail,
    edges_of,
    index_line,
    is_of_interest,
    is_simulated,
    pack,
)
from strategies import case, judgment

JUDGED = case(
    "p",
    "abc",
    ["a>b", "b>c", "c>a", "a?b"],
    category=("math", "algebra"),
    language="zh",
    text="什么是质数？",
    ranking=(("a", "b", "c"),),
)
GOLD = case("p", "abcd", category=("math",), language="zh", ranking=(("a",), ("b", "c", "d")))
ITEM = scored_item(
    "p",
    language="zh",
    category="math",
    num_pairs=3,
    num_correct=2,
    scores={"a": 1.0, "b": None, "c": 0.5, "d": 0.0},
    ranking=(("a",), ("b",)),
)
OTHER = scored_item("q", num_pairs=1, num_correct=1, exact_match=True, scores={"x": 1.0}, ranking=(("x",), ("y",)))


def known():
    return JoinedItems({"resolve": [JUDGED], "evaluate": [GOLD]}, [[ITEM, OTHER], [OTHER]])


def test_files_and_evaluations_are_joined_by_prompt_and_language():
    first, second = known()
    assert first.key == ("p", "zh")
    assert [name for name, _ in first.cases] == ["resolve", "evaluate"]
    assert first.outcomes == (ITEM, None)
    assert second.key == ("q", None)
    assert second.outcomes == (OTHER, OTHER)
    parallel = JoinedItems({"resolve": [JUDGED, case("p", "abc", language="en")]}, [])
    assert [one.key for one in parallel] == [("p", "zh"), ("p", "en")]


def test_a_line_of_the_table_by_hand():
    first, second = known()
    marks = ErrorMarks((PromptErrors(np.array([1.23456, np.nan]), np.array([5, 0])),), {0: [(0, 1)]})
    assert index_line(first, edges_of(first), 0, marks) == [
        "p",
        "zh",
        "math",
        "什么是质数？",
        [[3, 2, 0, None, 1, 1.235, 5], None],
        3,
        4,
        3,
        [[0, 1]],
    ]
    unmarked = [1, 1, 0, True, 0, None, 0]
    assert index_line(second, edges_of(second), 1, marks) == ["q", None, "c", "", [unmarked] * 2, 1, 0, 0, []]


def test_the_whole_item_has_every_response_and_every_ranking_that_is_said():
    whole = detail(known()[0], edges_of(known()[0]))
    assert [(one["id"], one["text"], one["scores"]) for one in whole["responses"]] == [
        ("a", "answer a", [1.0, None]),
        ("b", "answer b", [None, None]),
        ("c", "answer c", [0.5, None]),
        ("d", "answer d", [0.0, None]),
    ]
    assert [one["names"] for one in whole["rankings"]] == [["resolve"], ["evaluate"]]
    assert whole["judgments"][3] == ["a", "b", "none", "j", "human", None]
    assert whole["edges"][0] == ["a", "b", 1, 0, 0, 1, True]


def test_answers_of_a_translation_task_have_the_language_of_the_translation():
    (item, *_) = known()
    name, whole_case = item.cases[0]
    prompt = msgspec.structs.replace(whole_case.prompt, meta={"answer_language": "he"})
    changed = msgspec.structs.replace(whole_case, prompt=prompt)
    whole = detail(item._replace(cases=((name, changed),)), ())
    assert (whole["language"], whole["answer_language"]) == (item.key[1], "he")


def test_ids_alone_where_no_file_has_the_texts():
    whole = detail(known()[1], ())
    assert whole["responses"] == [{"id": "x", "text": None, "author": None, "scores": [1.0, 1.0]}]
    assert whole["rankings"] == [{"names": ["evaluate"], "tiers": [["x"], ["y"]]}]
    assert whole["messages"] == []


def test_an_answer_of_several_turns_is_shown_as_one_text():
    turns = (Message(role="assistant", content="Which one?"), Message(role="user", content="Both."))
    one = case("p", "a").__class__(prompt=JUDGED.prompt, responses=(Response(id="a", messages=turns),))
    (only,) = JoinedItems({"resolve": [one]}, [])
    assert detail(only, ())["responses"][0]["text"] == "assistant: Which one?\n\nuser: Both."


def test_errors_and_conflicts_are_of_interest():
    first, second = known()
    assert is_of_interest(first, edges_of(first))
    assert not is_of_interest(second, ())
    (calm,) = JoinedItems({"resolve": [case("p", "ab", ["a>b"])]}, [])
    assert not is_of_interest(calm, edges_of(calm))


def test_simulated_says_so_in_the_case_or_in_a_judgment():
    assert is_simulated(case(meta={"simulated": True}))
    assert is_simulated(case(judgments=[judgment("a>b", meta={"simulated": True})]))
    assert not is_simulated(JUDGED)


def unpacked(page):
    return msgspec.json.decode(gzip.decompress(base64.b64decode(page)))


def lines_of(packed):
    return [msgspec.json.decode(line) for line in packed.lines]


MADE_CASES = made_cases(60)
JOINED = JoinedItems({"resolve": MADE_CASES}, [[msgspec.convert(row, ScoredItem) for row in item_rows(MADE_CASES)]])


def test_every_item_has_its_place_when_all_fit():
    packed = pack(JOINED, budget=2**20)
    assert packed.num_whole == len(packed.lines) == 60
    for line in lines_of(packed):
        page, position = line[-1]
        assert unpacked(packed.pages[page])[position]["id"] == line[0]


def test_over_budget_the_interesting_ones_come_first_and_every_line_stays():
    needed = sum(map(len, pack(JOINED, budget=2**20).pages))
    packed = pack(JOINED, budget=needed - 1)
    assert 0 < packed.num_whole < 60
    assert packed.num_whole % 25 == 0
    assert len(packed.lines) == 60
    placed = [line for line in lines_of(packed) if line[-1] is not None]
    assert len(placed) == packed.num_whole
    assert all(line[7] > 0 or line[4][0][1] < line[4][0][0] for line in placed)


def test_no_budget_no_texts():
    assert pack(JOINED, budget=0).pages == []
    assert pack([], budget=10).lines == []
