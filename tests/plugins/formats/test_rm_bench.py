import pytest

from format_rows import read
from steelyard.core.errors import RecordError
from steelyard.core.plugins import build
from steelyard.ranking.pairs import pairs_of

ROW = {"id": 3, "prompt": "q", "chosen": ["c1", "c2", "c3"], "rejected": ["r1", "r2", "r3"], "domain": "chat"}


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


@pytest.mark.parametrize("change", [{"chosen": ["a", "b"]}, {"rejected": [1, 2, 3]}, {"domain": None}])
def test_a_row_of_another_shape_is_named(change):
    (key,) = change
    with pytest.raises(RecordError, match=rf"^f\.jsonl:1.*{key}"):
        read("rm_bench", {**ROW, **change})


def test_a_file_of_one_domain_names_the_sources():
    row = {key: value for key, value in ROW.items() if key != "domain"} | {"subset": "alpacaeval"}
    (one,), _ = read("rm_bench", row)
    assert (one.prompt.id, one.prompt.subset, one.prompt.meta) == ("alpacaeval/3", None, {"subset": "alpacaeval"})
    assert build("formats", "rm_bench").matches(row)
    assert not build("formats", "rewardbench2").matches(row)
