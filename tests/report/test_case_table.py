import msgspec

from steelyard.core.remedies import Command
from steelyard.io.terminal_text import plain
from steelyard.report.case_analysis import analyze_case
from steelyard.report.item_list import ItemList, ItemRow, item_row, list_lines, list_record, table_lines
from strategies import case

ROWS = (
    ItemRow("p1", "zh", 5, 15, 2, 3, "天空为什么是\n蓝色的？"),
    ItemRow("p2[b]\t", None, 2, 0, 0, None, "why " * 30),
)


def texts(lines):
    return [plain(line) for line in lines]


def listing(rows=ROWS, **fields):
    given = {
        "opened_by": Command("inspect", ("f",)), "num_items": 2, "num_found": 2, "first": 1, "next_page": None,
        "looked_up": ("items: f",), **fields,
    }  # fmt: skip
    return ItemList(rows=rows, **given)


def test_a_row_counts_what_the_case_holds():
    one = case("p", "abc", ["a>b", "b>a", "a>c"], language="en", text="Why?")
    assert item_row(analyze_case(one)) == ItemRow("p", "en", 3, 3, 2, 2, "Why?")
    assert item_row(analyze_case(case("p", "ab"))).tiers is None
    assert item_row(analyze_case(case("p", "ab", ranking=(("a",), ("b",))))).tiers == 2


def test_the_table_has_columns_where_they_fit():
    assert texts(table_lines(ROWS, 75)) == [
        "id         lang  responses  judgments  conflicts  tiers  prompt",
        "p1         zh            5         15          2      3  天空为什么是␊蓝色…",
        "p2[b]␉     -             2          0          0      -  why why why why w…",
    ]


def test_a_narrow_table_has_lines_below_each_other_and_the_whole_id():
    assert texts(table_lines(ROWS, 40)) == [
        "p1",
        "  zh · responses 5 · judgments 15",
        "  conflicts 2 · tiers 3",
        "  天空为什么是␊蓝色的？",
        "p2[b]␉",
        "  responses 2 · judgments 0",
        "  conflicts 0 · tiers -",
        "  why why why why why why why why why w…",
    ]


def test_the_first_line_opens_an_item_and_the_last_goes_on():
    found = texts(list_lines(listing(num_items=50, num_found=41, first=21, next_page=3), 80))
    assert found[:3] == ["open one: steelyard inspect f with id=p1", "items: f", ""]
    assert found[-1] == "items 21 to 22 of 41; 50 in all · more: page=3"


def test_an_id_of_several_languages_is_opened_with_its_language():
    both = (ROWS[0]._replace(id="a b", language=None), ROWS[0]._replace(id="a b"))
    assert texts(list_lines(listing(both), 80))[0] == (
        "open one: steelyard inspect f with id=a b, language=unspecified"
    )


def test_nothing_found_is_said():
    found = texts(list_lines(listing((), num_found=0), 80))
    assert found == ["items: f", "", "none of 2 items has it"]


def test_the_record_has_the_rows_whole():
    record = msgspec.json.decode(msgspec.json.encode(list_record(listing())))
    assert record["rows"][1] == {
        "id": "p2[b]\t", "language": None, "responses": 2, "judgments": 0, "conflicts": 0, "tiers": None,
        "preview": "why " * 30,
    }  # fmt: skip
    assert record["open_one"] == "steelyard inspect f with id=p1"
