import pytest

from steelyard.core.errors import RecordError
from steelyard.evaluation.items import Item, read_items

LINE = '{"prompt":"p","category":"数学","num_pairs":2,"num_correct":1,"num_tied":1,"exact_match":false,"scores":{}}\n'


def test_items_are_read_whatever_else_they_say(tmp_path):
    (tmp_path / "items.jsonl").write_text(LINE, encoding="utf-8")
    wanted = Item(prompt="p", category="数学", num_pairs=2, num_correct=1, num_tied=1, exact_match=False)
    assert list(read_items(tmp_path)) == [wanted]


def test_what_a_prompt_is_drawn_with_and_the_benchs_own_columns_are_read(tmp_path):
    line = LINE.replace('"scores":{}', '"unit":"q","own":[1,0,2]')
    (tmp_path / "items.jsonl").write_text(LINE + line, encoding="utf-8")
    found = [(one.unit, one.own) for one in read_items(tmp_path)]
    assert found == [(None, ()), ("q", (1, 0, 2))]


def test_what_is_no_item_is_named_with_its_line(tmp_path):
    (tmp_path / "items.jsonl").write_text(LINE + '{"prompt":"q"}\n', encoding="utf-8")
    with pytest.raises(RecordError, match=r"items\.jsonl:2: not an item of an evaluation"):
        list(read_items(tmp_path))
