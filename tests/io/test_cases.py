import json
from pathlib import Path

import msgspec
import pytest
from hypothesis import given
from hypothesis import strategies as st

from steelyard.core.errors import FileError, KindError, Place, RecordError
from steelyard.core.types import Case, Pair
from steelyard.evaluation.recognition import known_cases
from steelyard.io.cases import decode_case, encode_case, line_end, read_cases, split_line, write_cases
from steelyard.stages.convert import convert
from strategies import case, cases, texts

PLACE = Place("cases.jsonl", 7)


def line(**changes):
    record = msgspec.to_builtins(case(judgments=["a>b"]))
    record.update(changes)
    return json.dumps(record, ensure_ascii=False).encode()


@given(cases())
def test_a_case_comes_back_as_it_went(one):
    assert decode_case(encode_case(one), PLACE) == one


def test_every_top_level_key_is_always_written():
    keys = ["format", "prompt", "responses", "judgments", "ratings", "ranking", "pairs", "meta"]
    assert list(json.loads(encode_case(case()))) == keys


def test_files_come_back_in_order(tmp_path):
    both = [case(id="二"), case(id="一", language="zh")]
    assert write_cases(tmp_path / "c.jsonl", both) == 2
    assert list(read_cases(tmp_path / "c.jsonl")) == both


@pytest.mark.parametrize(
    ("broken", "found"),
    [
        (line()[:-30], r"cases\.jsonl:7: the line is cut off"),
        (
            b"[1, 2]",
            r"cases\.jsonl:7: an array where a case should be\n.*\n  do: .* convert IN OUT with to_kind=cases",
        ),
        (
            line(meta={"a": 0}).replace(b": 0}", b": " + b"[" * 10**5 + b"]" * 10**5 + b"}"),
            r"cases\.jsonl:7: lists within",
        ),
        (b'"text"', r"cases\.jsonl:7: Expected `object`, got `str`"),
        (b"{not json}", r"cases\.jsonl:7: the line is not JSON"),
        (line(prompt=3), r"cases\.jsonl:7 at prompt: Expected `object`, got `int`"),
        (line(judgment=[]), r"cases\.jsonl:7: Object contains unknown field `judgment`"),
        (line(format=2), r"cases\.jsonl:7 at format: Invalid"),
    ],
)
def test_a_broken_line_is_named_with_its_place(broken, found):
    with pytest.raises(RecordError, match=found):
        decode_case(broken, PLACE)


def test_an_unknown_verdict_is_named_with_the_allowed_ones():
    record = json.loads(line())
    record["judgments"][0]["verdict"] = "Left"
    with pytest.raises(RecordError, match=r"judgments\[0\]\.verdict: unknown verdict 'Left'") as caught:
        decode_case(json.dumps(record).encode(), PLACE)
    assert "allowed: left, right, tie, none" in str(caught.value)


WRITTEN = {
    "prompt": {"id": "1", "messages": [{"role": "user", "content": "为什么?"}]},
    "responses": [{"id": "a", "text": "لأن"}, {"id": "b", "text": "क्योंकि"}],
    "judgments": [{"left": "a", "right": "b", "verdict": "left", "judge": "Li", "kind": "human"}],
    "ratings": [{"response": "a", "rater": "Li", "kind": "human", "dimension": "overall", "value": 4}],
    "pairs": [{"better": "a", "worse": "b"}],
}


@pytest.mark.parametrize("part", ["prompt", "responses", "judgments", "ratings", "pairs"])
@pytest.mark.parametrize("change", ["without its field", "with a field too many"])
def test_a_field_that_is_missing_or_unknown_is_shown_in_an_example_that_can_be_read(part, change):
    row = msgspec.json.decode(msgspec.json.encode(WRITTEN))
    entry = row[part] if part == "prompt" else row[part][0]
    if change == "without its field":
        entry.pop(list(entry)[-1] if part != "responses" else "id")
    else:
        entry["colour"] = 1
    with pytest.raises(RecordError, match=r"Object (missing required|contains unknown) field") as refused:
        decode_case(msgspec.json.encode(row), Place("hand.jsonl", 1))
    assert "docs/formats.md" in refused.value.do
    example = json.loads("{" + refused.value.allowed + "}")
    assert list(example) == [part]
    decode_case(msgspec.json.encode(WRITTEN | example), Place("hand.jsonl", 1))


def test_a_case_without_responses_is_shown_a_whole_case_and_how_a_prompt_alone_is_written():
    with pytest.raises(RecordError, match="missing required field `responses`") as refused:
        decode_case(msgspec.json.encode({"prompt": WRITTEN["prompt"]}), Place("hand.jsonl", 1))
    decode_case(refused.value.allowed.encode(), Place("hand.jsonl", 1))
    assert 'write "responses": [] for a prompt alone; docs/formats.md' in refused.value.do
    decode_case(msgspec.json.encode({"prompt": WRITTEN["prompt"], "responses": []}), Place("hand.jsonl", 1))


def test_bytes_that_are_not_utf8_are_named():
    broken = line().replace(b"What", b"Wh\xff\xfe")
    with pytest.raises(FileError, match=r"cases\.jsonl:7: byte \d+ is not UTF-8"):
        decode_case(broken, PLACE)


def test_a_key_given_twice_is_an_error_and_a_language_makes_it_another(tmp_path):
    path = tmp_path / "c.jsonl"
    write_cases(path, [case(id="x", language="zh"), case(id="x", language="en")])
    assert len(list(read_cases(path))) == 2
    write_cases(path, [case(id="x"), case(id="y"), case(id="x")])
    with pytest.raises(RecordError, match=r"c\.jsonl:3: prompt id 'x'.*is already used at .*c\.jsonl:1"):
        list(read_cases(path))


def test_a_line_of_twenty_megabytes_is_read(tmp_path):
    path = tmp_path / "c.jsonl"
    write_cases(path, [case(text="字" * 7_000_000)])
    assert path.stat().st_size > 20 * 2**20
    assert len(next(iter(read_cases(path))).prompt.messages[0].content) == 7_000_000


SPLIT_PLACE = Place("c.jsonl", 1)
NEW = (("b",), ("a", "c"))
QUOTED = '","ranking":null,"pairs":null,"meta":{}}\\'


def spliced(line, ranking):
    opened = split_line(line, decode_case(line, SPLIT_PLACE))
    return opened.num_prefix, line[: opened.num_prefix] + line_end(opened, ranking)


def test_ranking_pairs_and_meta_end_a_line():
    assert [field.name for field in msgspec.structs.fields(Case)][-3:] == ["ranking", "pairs", "meta"]


@given(cases(max_judgments=4), texts, st.booleans(), st.sampled_from([None, (("r0",), ("r1",))]))
def test_our_own_lines_are_cut_and_closed_as_if_encoded(one, text, has_pairs, ranking):
    given_case = msgspec.structs.replace(
        one,
        meta={"note": text, QUOTED: [QUOTED, {"meta": {}}]},
        pairs=(Pair(better="r0", worse="r1"),) if has_pairs else None,
        ranking=ranking,
    )
    line = encode_case(given_case)
    kept, found = spliced(line, NEW)
    assert found == encode_case(msgspec.structs.replace(given_case, ranking=NEW))
    assert line[kept:].startswith(b',"ranking":')
    assert spliced(line, None)[1] == encode_case(msgspec.structs.replace(given_case, ranking=None))


@pytest.mark.parametrize("tail", ["", "\n", "\r\n", "  \n"])
def test_other_orders_of_keys_and_other_ends_are_written_anew(tail):
    columns = json.loads(encode_case(case(judgments=["a>b"], ranking=(("a",), ("b",)))))
    line = (json.dumps(dict(reversed(columns.items())), indent=None) + tail).encode()
    kept, found = spliced(line, NEW)
    assert kept == 0
    assert found == encode_case(msgspec.structs.replace(decode_case(line, SPLIT_PLACE), ranking=NEW))


def test_absent_columns_are_written_anew():
    line = b'{"format":1,"prompt":{"id":"p","messages":[]},"responses":[],"meta":{}}\n'
    assert spliced(line, None) == (0, encode_case(decode_case(line, SPLIT_PLACE)))


def test_what_looks_like_an_end_within_meta_is_none():
    inner = b'{"format":1,"prompt":{"id":"p","messages":[]},"responses":[],"ranking":null,"meta":{"m":'
    line = inner + b'{"a":1,"ranking":null,"pairs":null,"meta":{}}}}\n'
    kept, found = spliced(line, NEW)
    assert kept == 0
    assert msgspec.json.decode(found)["ranking"] == [["b"], ["a", "c"]]
    assert msgspec.json.decode(found)["meta"] == msgspec.json.decode(line)["meta"]


@pytest.mark.parametrize(
    ("name", "content"),
    [
        ("raw.jsonl", '{"prompt": "Why?"}\n'),
        ("raw.jsonl", '{"instruction": "Translate", "input": "one"}\n'),
        ("raw.jsonl", '{"messages": [{"role": "user", "content": "Why?"}]}\n'),
        ("raw.txt", "Why?\n"),
        ("raw.csv", "prompt,language\nWhy?,en\n"),
    ],
)
def test_the_remedy_for_raw_prompts_makes_a_case_file_of_them(tmp_path, monkeypatch, name, content):
    monkeypatch.chdir(tmp_path)
    (tmp_path / name).write_text(content, encoding="utf-8")
    with pytest.raises(RecordError, match=rf"make a case file of it: steelyard convert {name} cases.jsonl"):
        list(read_cases(Path(name)))
    convert(Path(name), Path("cases.jsonl"))
    assert len(list(read_cases(Path("cases.jsonl")))) == 1


@pytest.mark.parametrize("reader", [read_cases, known_cases])
def test_the_remedy_for_foreign_rows_in_cases_jsonl_writes_another_file(tmp_path, monkeypatch, reader):
    monkeypatch.chdir(tmp_path)
    Path("cases.jsonl").write_text('{"unknown": "Why?"}\n', encoding="utf-8")
    with pytest.raises((KindError, RecordError), match=r"steelyard convert cases\.jsonl converted\.jsonl"):
        list(reader(Path("cases.jsonl")))
