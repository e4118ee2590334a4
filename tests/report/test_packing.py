import base64
import gzip

import msgspec

from report_runs import item_rows, made_cases
from steelyard.report.items import join_items
from steelyard.report.packing import ITEMS_A_PAGE, pack
from steelyard.report.summary_readers import Item


def unpacked(page):
    return msgspec.json.decode(gzip.decompress(base64.b64decode(page)))


def lines_of(packed):
    return [msgspec.json.decode(line) for line in packed.lines]


CASES = made_cases(60)
ITEMS = join_items({"resolve": CASES}, [[msgspec.convert(row, Item) for row in item_rows(CASES)]])


def test_every_item_has_its_place_when_all_fit():
    packed = pack(ITEMS, budget=2**20)
    assert packed.num_whole == len(packed.lines) == 60
    for line in lines_of(packed):
        page, position = line[-1]
        assert unpacked(packed.pages[page])[position]["id"] == line[0]


def test_over_budget_the_interesting_ones_come_first_and_every_line_stays():
    needed = sum(map(len, pack(ITEMS, budget=2**20).pages))
    packed = pack(ITEMS, budget=needed - 1)
    assert 0 < packed.num_whole < 60
    assert packed.num_whole % ITEMS_A_PAGE == 0
    assert len(packed.lines) == 60
    placed = [line for line in lines_of(packed) if line[-1] is not None]
    assert len(placed) == packed.num_whole
    assert all(line[7] > 0 or line[4][0][1] < line[4][0][0] for line in placed)


def test_no_budget_no_texts():
    assert pack(ITEMS, budget=0).pages == []
    assert pack([], budget=10).lines == []
