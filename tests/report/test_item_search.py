import msgspec
import pytest

from steelyard.core.errors import ConfigError, EvidenceError, RecordError
from steelyard.core.types import Message, Response
from steelyard.io.cases import write_cases
from steelyard.report.case_sources import CaseFile, Rule
from steelyard.report.item_list import ItemFilter, find_item, list_items, nearest_ids
from strategies import case, judgment


@pytest.fixture
def files(tmp_path):
    first = [case(f"p-{n:02}", "ab", ["a>b"], language="en", category=("math",)) for n in range(25)]
    both = [case("both", "ab", language=language, text=text) for language, text in (("zh", "你好"), (None, "Hi"))]
    turns = (Message(role="assistant", content="Needle in turns"),)
    second = [
        case("q", "ab", ["a>b", "b>a"], text="[Strasse]"),
        msgspec.structs.replace(case("r", ""), responses=(Response(id="x", messages=turns),)),
    ]
    write_cases(tmp_path / "one.jsonl", [*first, *both])
    write_cases(tmp_path / "two.parquet", second)
    return tuple(CaseFile(tmp_path / name, "given") for name in ("one.jsonl", "two.parquet"))


def test_an_item_is_found_with_its_file_and_place(files):
    found = find_item(files, "p-03", None)
    assert (found.case.prompt.id, found.file.path.name, found.position) == ("p-03", "one.jsonl", 4)
    assert find_item(files, "q", None).file.path.name == "two.parquet"


def test_an_unknown_id_gives_the_nearest(files):
    with pytest.raises(EvidenceError) as error:
        find_item(files, "p-3", None)
    assert "did you mean" in str(error.value)
    assert "p-03" in str(error.value)
    assert len(error.value.allowed.split(", ")) <= 6
    with pytest.raises(EvidenceError, match="search=TEXT") as error:
        find_item(files, "nothing like it", None)
    assert error.value.allowed is None


def test_an_id_in_several_languages_needs_one(files):
    with pytest.raises(EvidenceError, match="exists in 2 languages") as error:
        find_item(files, "both", None)
    assert error.value.allowed == "unspecified, zh"
    assert error.value.do == "name one: language=CODE"
    assert find_item(files, "both", "zh").case.prompt.messages[0].content == "你好"
    assert find_item(files, "both", "unspecified").case.prompt.language is None
    with pytest.raises(EvidenceError, match="no item of language 'fr'") as error:
        find_item(files, "both", "fr")
    assert error.value.allowed == "unspecified, zh"


def test_a_language_is_looked_for_in_every_file(tmp_path):
    write_cases(tmp_path / "zh.jsonl", [case("p", language="zh")])
    write_cases(tmp_path / "ar.jsonl", [case("p", language="ar")])
    both = [CaseFile(tmp_path / name, "given") for name in ("zh.jsonl", "ar.jsonl")]
    assert find_item(both, "p", "ar").case.prompt.language == "ar"


def test_what_stands_behind_the_item_of_a_language_is_not_read(tmp_path):
    write_cases(tmp_path / "f.jsonl", [case("p", language="zh")])
    with (tmp_path / "f.jsonl").open("a") as file:
        file.write("broken\n")
    assert find_item([CaseFile(tmp_path / "f.jsonl", "given")], "p", "zh").position == 1
    with pytest.raises(RecordError, match=r"f\.jsonl:2"):
        find_item([CaseFile(tmp_path / "f.jsonl", "given")], "p", None)


def test_ids_with_control_characters_are_shown(tmp_path):
    write_cases(tmp_path / "f.jsonl", [case("an\x1bid")])
    with pytest.raises(EvidenceError) as error:
        find_item([CaseFile(tmp_path / "f.jsonl", "given")], "anid\x1b", None)
    assert "\x1b" not in str(error.value)
    assert "an␛id" in str(error.value)


def test_pages_follow_each_other(files):
    first = list_items(files, ItemFilter(limit=10), Rule())
    assert [row.id for row in first.rows] == [f"p-{n:02}" for n in range(10)]
    assert (first.num_items, first.num_found) == (29, 29)
    last = list_items(files, ItemFilter(limit=10, page=3), Rule())
    assert [row.id for row in last.rows][-4:] == ["both", "both", "q", "r"]
    assert last.rows[-2].conflicts == 2


@pytest.mark.parametrize(
    ("settings", "told"), [({"limit": 0}, "limit=0"), ({"page": 0}, "page=0"), ({"page": 3}, "no page 3")]
)
def test_pages_that_there_are_not_are_refused(files, settings, told):
    with pytest.raises(ConfigError, match=told):
        list_items(files, ItemFilter(**settings), Rule())


@pytest.mark.parametrize(
    ("wanted", "ids"),
    [
        ({"search": "STRASSE"}, ["q"]),
        ({"search": "straße"}, ["q"]),
        ({"search": "needle"}, ["r"]),
        ({"search": "你好"}, ["both"]),
        ({"search": "p-0", "limit": 3}, ["p-00", "p-01", "p-02"]),
        ({"search": "math", "limit": 1}, ["p-00"]),
        ({"language": "zh"}, ["both"]),
        ({"language": "unspecified"}, ["both", "q", "r"]),
        ({"search": "[bold]"}, []),
    ],
)
def test_a_search_looks_at_ids_and_texts(files, wanted, ids):
    assert [row.id for row in list_items(files, ItemFilter(**wanted), Rule()).rows] == ids


def test_the_rule_decides_what_is_in_conflict(tmp_path):
    write_cases(tmp_path / "f.jsonl", [case("p", judgments=["a>b", judgment("a>b", judge="k"), "b>a"])])
    files = [CaseFile(tmp_path / "f.jsonl", "given")]
    assert list_items(files, ItemFilter(), Rule()).rows[0].conflicts == 3
    assert list_items(files, ItemFilter(), Rule(aggregate="majority")).rows[0].conflicts == 1


def test_the_nearest_are_alike_or_hold_the_id():
    ids = ["halluqa-017", "halluqa-170", "other", "x-17-with-a-long-tail"]
    assert set(nearest_ids("halluqa-17", iter(ids))) == {"halluqa-017", "halluqa-170"}
    assert nearest_ids("17-WITH", iter(ids)) == ["x-17-with-a-long-tail"]
    assert nearest_ids("zzz", iter(ids)) == []
