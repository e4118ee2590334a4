import pytest
from msgspec.structs import replace

from format_rows import read, write
from steelyard.core.errors import RecordError
from strategies import case, judgment

ITEM = {"prompt": "q", "A": "a", "B": "b", "C": "c", "D": "d"}


def row(order, user="ann", instance="i", **other):
    return {"instance_id": instance, "user_id": user, "labels": {"s": {"rank_order": order}}, "item": ITEM, **other}


def test_equal_signs_are_ties():
    (one,), _ = read("potato", row("B, D=A,C"))
    assert {(said.left, said.verdict, said.right) for said in one.judgments} == {
        ("B", "left", "D"),
        ("B", "left", "A"),
        ("B", "left", "C"),
        ("D", "tie", "A"),
        ("D", "left", "C"),
        ("A", "left", "C"),
    }
    assert {(said.judge, said.kind, said.task) for said in one.judgments} == {("ann", "human", "s")}


def test_rows_of_one_instance_are_one_case():
    rows = [row("A,B,C,D", time=1, batch=7), row("B,A,C,D", "bo", time=2, batch=7), row("A,B,C,D", instance="j")]
    cases, warnings = read("potato", *rows)
    assert [len({said.judge for said in one.judgments}) for one in cases] == [2, 1]
    assert cases[0].prompt.meta == {"batch": 7}
    assert write("potato", *cases)[0] == rows
    assert warnings == {}
    with pytest.raises(RecordError, match=r"^f\.jsonl:3: id 'i' is already used at f\.jsonl:1"):
        read("potato", rows[0], rows[2], rows[1])


def test_other_evidence_is_written_anew():
    (one,), _ = read("potato", row("A,B,C,D"))
    rows, dropped = write("potato", replace(one, judgments=one.judgments[:1]))
    assert rows == [row("A,B")]
    assert dropped["annotations written anew"] == 1


def test_a_case_from_elsewhere_is_read_again_as_it_was():
    said = ["a>b", "b=c", "a>c", judgment("c?a", judge="bo")]
    rows, dropped = write("potato", case(responses=["a", "b", "c", "d,e"], judgments=said))
    assert rows[0]["labels"] == {"ranking": {"rank_order": "a,b=c"}}
    assert dropped == {"response ids that a rank order cannot hold": 1, "judgments without a verdict": 1}
    (again,), _ = read("potato", *rows)
    assert [response.id for response in again.responses] == ["a", "b", "c", "response4"]
    _, dropped = write("potato", case(responses="ab", judgments=[judgment("a>b", kind="llm")]))
    assert dropped["judges"] == 1


@pytest.mark.parametrize(
    ("broken", "found"),
    [
        (row("A,A"), "labels.s: a ranking 'A,A'"),
        (row("A,,B"), "labels.s: a ranking 'A,,B'"),
        ({**row("A,B"), "item": {"prompt": "q", "response1": "x"}}, "labels.s"),
        ({**row("A,B"), "item": "x"}, "item"),
        ({**row("A,B"), "labels": None}, "labels"),
        ({**row("A,B"), "instance_id": True}, "instance_id"),
    ],
)
def test_what_is_wrong_is_named(broken, found):
    with pytest.raises(RecordError, match=rf"^f\.jsonl:1.*{found}"):
        read("potato", broken)


def test_texts_under_any_name_are_the_answers_of_a_selection():
    item = {"id": "i", "question": "q", "text": ["甲", "乙"]}
    rows = [row("") | {"item": item, "labels": {"s": {"selection": name}}} for name in ("A", "b", "Both good", "no")]
    (one,), warnings = read("potato", *rows)
    assert [response.text for response in one.responses] == ["甲", "乙"]
    assert [(said.left, said.verdict, said.right) for said in one.judgments] == [
        ("A", "left", "B"),
        ("B", "left", "A"),
        ("A", "tie", "B"),
    ]
    assert warnings == {"labels that are not rankings": 1}


OLD_ITEM = {"prompt": "什么是秤？", "responses": ["称重的工具。", "乐器。"]}


def old(labels, user="u", **keys):
    """A row of an older version: the labels of a scheme are keys."""
    return {"id": 7, "user_id": user, "label_annotations": {"better": labels}, "item": OLD_ITEM, **keys}


def test_one_label_of_an_older_version_is_a_selection_and_the_rows_come_back():
    rows = [
        old({"Response B": "1", "Response A": ""}, "u", span_annotations=[]),
        old({"A": True}, "v", span_annotations=[]),
        old({"tie": "tie"}, "w", span_annotations=[]),
    ]
    (one,), warnings = read("potato", *rows)
    texts = {response.id: response.text for response in one.responses}
    assert [(said.judge, said.verdict, texts[said.left]) for said in one.judgments] == [
        ("u", "left", "乐器。"),
        ("v", "left", "称重的工具。"),
        ("w", "tie", "称重的工具。"),
    ]
    assert (one.prompt.id, warnings) == ("7", {})
    assert write("potato", one)[0] == rows


@pytest.mark.parametrize("labels", [{}, {"A": "1", "B": "1"}, {"fluent": "1"}, {"A": "0"}])
def test_other_labels_of_an_older_version_are_counted(labels):
    (one,), warnings = read("potato", old(labels))
    assert (one.judgments, warnings) == ((), {"labels that are not rankings": 1})


def test_rows_of_an_older_version_without_their_item_say_how_to_join_them():
    shown = {"id": "7", "displayed_text": "<b>A.</b> x", "label_annotations": {}, "behavioral_data": {}}
    with pytest.raises(RecordError, match=r"^f\.jsonl:1: the row lacks 'item'\n.*\n.*under 'item'.* the id of the row"):
        read("potato", shown)
