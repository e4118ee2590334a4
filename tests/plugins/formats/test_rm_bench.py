import pytest
from msgspec.structs import replace

from format_rows import read, write
from steelyard.core.errors import RecordError
from steelyard.core.plugins import build
from steelyard.ranking.pairs import pairs_of
from strategies import case

ROW = {"id": 3, "prompt": "q", "chosen": ["c1", "c2", "c3"], "rejected": ["r1", "r2", "r3"], "domain": "chat"}
SIX = (("a", "b", "c"), ("d", "e", "f"))


def test_the_place_is_the_style_and_nine_pairs_count():
    (one,), _ = read("rm_bench", ROW)
    assert (one.prompt.id, one.prompt.subset) == ("chat/3", "chat")
    assert [(response.text, response.meta["style"]) for response in one.responses] == [
        ("c1", "concise"),
        ("c2", "detailed"),
        ("c3", "markdown"),
        ("r1", "concise"),
        ("r2", "detailed"),
        ("r3", "markdown"),
    ]
    texts = [response.text for response in one.responses]
    assert {(texts[pair.better], texts[pair.worse]) for pair in pairs_of(one)} == {
        (f"c{row}", f"r{column}") for row in (1, 2, 3) for column in (1, 2, 3)
    }


def test_sides_are_written_by_their_styles():
    (one,), _ = read("rm_bench", ROW)
    turned = replace(one, responses=one.responses[::-1], ranking=tuple(tier[::-1] for tier in one.ranking))
    rows, dropped = write("rm_bench", turned)
    assert rows == [ROW]
    assert dropped == {"prompt ids": 1, "response ids": 6}


def test_sides_without_styles_are_written_in_their_order_and_counted():
    rows, dropped = write("rm_bench", case(responses="abcdef", ranking=SIX))
    assert (rows[0]["chosen"][0], rows[0]["rejected"][0]) == ("answer a", "answer d")
    assert dropped["sides without the three styles, in the order of the ranking"] == 2


def test_other_numbers_of_answers_are_another_shape():
    rows, dropped = write("rm_bench", case(responses="abc", ranking=(("a",), ("b", "c"))))
    assert (rows, dropped["cases of another shape"]) == ([], 1)


@pytest.mark.parametrize("change", [{"chosen": ["a", "b"]}, {"rejected": [1, 2, 3]}, {"domain": None}])
def test_a_row_of_another_shape_is_named(change):
    (key,) = change
    with pytest.raises(RecordError, match=rf"^f\.jsonl:1.*{key}"):
        read("rm_bench", {**ROW, **change})


def test_a_file_of_one_domain_names_the_sources():
    row = {key: value for key, value in ROW.items() if key != "domain"} | {"subset": "alpacaeval"}
    (one,), _ = read("rm_bench", row)
    assert (one.prompt.id, one.prompt.subset, one.prompt.meta) == ("alpacaeval/3", None, {"subset": "alpacaeval"})
    assert write("rm_bench", one)[0] == [row]
    assert build("formats", "rm_bench").matches(row)
    assert not build("formats", "rewardbench2").matches(row)
    in_domain = replace(one, prompt=replace(one.prompt, subset="chat"))
    assert write("rm_bench", in_domain)[0] == [{**row, "domain": "chat"}]
