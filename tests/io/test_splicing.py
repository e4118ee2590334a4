import json

import msgspec
import pytest
from hypothesis import given
from hypothesis import strategies as st

from steelyard.core.errors import Place
from steelyard.core.types import Case, Pair
from steelyard.io.cases import decode_case, encode_case
from steelyard.io.splicing import close_line, open_line
from strategies import case, cases, texts

PLACE = Place("c.jsonl", 1)
NEW = (("b",), ("a", "c"))
QUOTED = '","ranking":null,"pairs":null,"meta":{}}\\'


def spliced(line, ranking):
    opened = open_line(line, decode_case(line, PLACE))
    return opened.kept, line[: opened.kept] + close_line(opened, ranking)


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
    assert found == encode_case(msgspec.structs.replace(decode_case(line, PLACE), ranking=NEW))


def test_absent_columns_are_written_anew():
    line = b'{"format":1,"prompt":{"id":"p","messages":[]},"responses":[],"meta":{}}\n'
    assert spliced(line, None) == (0, encode_case(decode_case(line, PLACE)))


def test_what_looks_like_an_end_within_meta_is_none():
    inner = b'{"format":1,"prompt":{"id":"p","messages":[]},"responses":[],"ranking":null,"meta":{"m":'
    line = inner + b'{"a":1,"ranking":null,"pairs":null,"meta":{}}}}\n'
    kept, found = spliced(line, NEW)
    assert kept == 0
    assert msgspec.json.decode(found)["ranking"] == [["b"], ["a", "c"]]
    assert msgspec.json.decode(found)["meta"] == msgspec.json.decode(line)["meta"]
