"""One suite for every file in plugins/formats: a golden file of each is recognised, read, written and read again."""

from collections import Counter
from pathlib import Path

import msgspec
import polars
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from each_value import each
from format_parts import seen_of, with_part
from steelyard.core.checks import check_case
from steelyard.core.errors import KindError, OutputError, Place, RecordError, UserError
from steelyard.core.plugins import build, kinds
from steelyard.core.protocols import Row
from steelyard.core.types import Case, Message, Pair, Prompt, Rating, Response
from steelyard.curation.format_support import PARTS, has_pair_rows, lost_parts
from steelyard.curation.merge import join_rows, prompt_key, split_rows
from steelyard.evaluation.recognition import recognise
from steelyard.io.cases import write_cases
from steelyard.io.rows import read_rows
from steelyard.stages.convert import Config, convert

GOLDEN = Path(__file__).parents[1] / "golden" / "formats"
KINDS = kinds("formats")
WRITTEN = [kind for kind in KINDS if build("formats", kind).is_written]
ONLY_READ = [kind for kind in KINDS if kind not in WRITTEN]
TABLE = (GOLDEN.parents[2] / "docs" / "formats.md").read_text(encoding="utf-8").partition("\n## ")[0]
GATHERED = ("helpsteer2", "maple", "mqm")  # a row is one answer, or one error in it: several make a case
TREES = ("oasst_messages", "oasst_trees")  # a case is a prompt of a tree, with the turns above it
ALPACA = [kind for kind in KINDS if kind.startswith("llamafactory_alpaca")]
PAIRED = [kind for kind in WRITTEN if "rankings" in build("formats", kind).supports]


def golden(kind):
    (path,) = GOLDEN.glob(f"{kind}.*")
    return path


def read(kind, rows, warnings=None):
    placed = [Row(Place("f", number), row) for number, row in enumerate(rows, 1)]
    return list(build("formats", kind).read(placed, Counter() if warnings is None else warnings))


def write(kind, cases, dropped=None):
    return list(build("formats", kind).write(cases, Counter() if dropped is None else dropped))


def rows_of(kind):
    return [row.value for row in read_rows(golden(kind))]


@each("kind", KINDS)
def test_the_golden_file_is_recognised_as_what_it_is(kind):
    rows = rows_of(kind)
    assert rows
    if all(build("formats", kind).matches(row) for row in rows):
        assert recognise(golden(kind)) == kind
    else:  # rows like another's: the documentation must send the user to --from
        (line,) = [line for line in TABLE.splitlines() if line.startswith(f"| `{kind}`")]
        assert "`--from`" in line


@each("kind", KINDS)
def test_cases_hold_together_and_the_rows_are_not_changed(kind):
    rows = rows_of(kind)
    before = msgspec.json.encode(rows)
    cases = read(kind, rows)
    assert [check_case(one) for one in cases] == cases
    assert msgspec.json.encode(rows) == before
    assert len({one.key for one in cases}) == len(cases)
    assert len(cases) == len(rows) or kind in TREES or (kind in GATHERED and len(cases) < len(rows))


@each("kind", WRITTEN)
def test_what_is_written_is_what_was_read(kind):
    rows = rows_of(kind)
    written = msgspec.json.decode(msgspec.json.encode(write(kind, read(kind, rows))))
    assert written == rows
    assert read(kind, written) == read(kind, rows)


@each("kind", KINDS)
@each("broken", [{}, {"prompt": 3}, {"chosen": 1, "rejected": 2}, {"instruction": 1, "output": "x"}])
def test_a_row_of_something_else_is_refused_with_its_line(kind, broken):
    with pytest.raises(UserError, match=r"^f:1"):
        read(kind, [broken])


@each("kind", KINDS)
@each("key", ["prompt", "chosen", "rejected", "instruction", "output", "conversations", "responses", "input", "subset"])
def test_a_key_that_a_row_lacks_is_named(kind, key):
    row = rows_of(kind)[0]
    if (
        key not in row
        or kind == "cases"
        or (key in ("prompt", "input") and kind in ("trl", "llamafactory_ranked", *ALPACA))
    ):
        return
    with pytest.raises(RecordError, match=f"^f:1.*{key}"):
        read(kind, [{name: value for name, value in row.items() if name != key}])


texts = st.text(st.characters(codec="utf-8", exclude_characters="\r"), min_size=1, max_size=30).map(
    lambda text: f"x{text}x"
)


@st.composite
def dialogues(draw):
    """A case of two to five answers in tiers, after a system text and some exchanges."""
    turns = [Message(role="system", content=draw(texts))] if draw(st.booleans()) else []
    for _ in range(draw(st.integers(0, 2))):
        turns += [Message(role="user", content=draw(texts)), Message(role="assistant", content=draw(texts))]
    turns.append(Message(role="user", content=draw(texts)))
    answers = draw(st.lists(texts, min_size=2, max_size=5, unique=True))
    responses = tuple(Response(id=f"r{number}", text=text) for number, text in enumerate(answers))
    tiers, left = [], [response.id for response in responses]
    while left:
        size = draw(st.integers(1, len(left)))
        tiers.append(tuple(left[:size]))
        left = left[size:]
    return Case(prompt=Prompt(id="p", messages=tuple(turns)), responses=responses, ranking=tuple(tiers))


def texts_and_pairs(cases):
    """What a pairwise format must carry: the conversation, and which text is better than which."""
    found = set()
    for one in cases:
        text = {response.id: response.text for response in one.responses}
        for index, tier in enumerate(one.ranking or ()):
            for better in tier:
                for lower in one.ranking[index + 1 :]:
                    found |= {(one.prompt.messages, text[better], text[worse]) for worse in lower}
    return found


@pytest.mark.parametrize("kind", PAIRED)
@settings(max_examples=40, deadline=None)
@given(one=dialogues())
def test_every_conversation_and_every_pair_survives(kind, one):
    dropped = Counter()
    again = read(kind, write(kind, [one], dropped))
    if dropped["cases of another shape"]:  # a benchmark of three against three, or of one against many
        assert again == []
        return
    assert texts_and_pairs(again) == texts_and_pairs([one])
    tied = sum(len(tier) * (len(tier) - 1) // 2 for tier in one.ranking)
    assert dropped["ties"] == (0 if "ties" in build("formats", kind).supports else tied)


@each("part", PARTS)
@each("kind", WRITTEN)
def test_a_part_comes_back_or_is_counted(kind, part):
    base = msgspec.structs.replace(read(kind, rows_of(kind))[0], meta={})
    one = with_part(base, part)
    if one is None:
        return
    supports, dropped = build("formats", kind).supports, Counter()
    rows = msgspec.json.decode(msgspec.json.encode(write(kind, [one], dropped)))
    if dropped["cases of another shape"]:  # counted as a whole: the part cannot stand alone in a row of this shape
        assert rows == []
        return
    if part in supports:
        assert seen_of(part, read(kind, rows)) == seen_of(part, [one])
        assert not dropped[part]
    elif part in lost_parts(supports):
        assert dropped[part]


def test_the_documentation_names_what_each_format_loses():
    lines = [line for line in TABLE.splitlines() if line.startswith("| `")]
    told = {line.split("`")[1]: line.split("|")[-2].strip() for line in lines}
    lost = {kind: ", ".join(lost_parts(build("formats", kind).supports)) or "nothing" for kind in WRITTEN}
    assert told == lost | dict.fromkeys(ONLY_READ, "only read")


@pytest.mark.parametrize("kind", ONLY_READ)
def test_a_format_that_is_only_read_is_refused_with_those_that_are_written(kind, tmp_path):
    write_cases(tmp_path / "c.jsonl", mixed_cases())
    with pytest.raises(KindError) as refused:
        convert(tmp_path / "c.jsonl", tmp_path / "rows.jsonl", Config(to_kind=kind))
    assert refused.value.problem == f"the format {kind!r} is only read"
    assert refused.value.allowed == ", ".join(WRITTEN)
    assert [path.name for path in tmp_path.iterdir()] == ["c.jsonl"]


EXTRA_KEYS = (
    "turns",
    "implicit",
    "absent",
    "as_read",
    "format",
    "note",
    "難易度",
    "rank",
    "input",
    "system",
    "source",
    "id",
)
OWN_KEYS = {kind: set(build("formats", kind).keys) for kind in KINDS}
CONVERSATION_PAIRS = (
    "columns",
    "hh_rlhf",
    "ms_swift",
    "openrlhf",
    "rewardbench",
    "rlhflow",
    "trl",
    "ultrafeedback_binarized",
)
FOREIGN = [kind for kind in KINDS if kind != "cases"]


def _answer(text):
    return {"role": "assistant", "content": text}


@st.composite
def foreign_rows(draw, kind):
    """A row as the format's users write it, with its optional keys or without, and with keys that others own."""
    question, system = draw(texts), draw(texts)
    better, worse = draw(st.lists(texts, min_size=2, max_size=2, unique=True))
    pair = {"chosen": better, "rejected": worse}
    optional = {"system": system, "history": [[draw(texts), draw(texts)]], "input": draw(st.sampled_from(["", "x\ny"]))}
    some = {key: draw(st.sampled_from([value, None])) for key, value in optional.items() if draw(st.booleans())}
    turns = [{"role": "user", "content": question}]
    row = {
        "cheems": {
            "id": "q",
            "input": question,
            "category": draw(st.sampled_from([[], ["a", "b"], "a"])),
            "responses": [{"id": "1", "content": better, "score": 2}, {"id": "2", "content": worse}],
            "annotations": draw(st.lists(st.sampled_from([["1", "2", "1"], ["2", "1", "g"], ["1", "2", 0]]))),
            "rank": draw(st.sampled_from([{}, {"1": 1, "2": 2}, {"1": 0.5, "2": 3}, {"2": 1, "1": 1}])),
            "sys_prompt": draw(st.sampled_from(["", system])),
        },
        "llamafactory_alpaca": {"instruction": question, **some, **pair},
        "llamafactory_ranked": {"instruction": question, **some, "output": [better, worse, better]},
        "llamafactory_sharegpt": {
            "conversations": [{"from": "human", "value": question}],
            "chosen": {"from": "gpt", "value": better},
            "rejected": {"from": "gpt", "value": worse},
            **({"system": draw(st.sampled_from([some["system"], ""]))} if "system" in some else {}),
        },
        "oasst_messages": {"message_id": "m", "parent_id": None, "text": question, "role": "prompter", "lang": "zh"},
        "oasst_trees": {
            "message_tree_id": "t",
            "prompt": {
                "message_id": "m",
                "text": question,
                "role": "prompter",
                "replies": [
                    {"message_id": text, "text": text, "role": "assistant", "rank": rank}
                    for rank, text in enumerate((better, worse))
                ],
            },
        },
        "rewardbench": {
            "id": draw(st.integers(0, 9)),
            "prompt": draw(st.sampled_from([question, turns])),
            **pair,
            "chosen_model": "m",
            "rejected_model": "n",
            "subset": "s",
            **draw(st.sampled_from([{}, {"language": "zh"}, {"language": None}])),
        },
        "trl": {
            "prompt": draw(st.sampled_from([turns, [{"role": "system", "content": system}, *turns]])),
            **{key: [_answer(text)] for key, text in pair.items()},
            **draw(st.sampled_from([{}, {"margin": 0.5}])),
        },
    }.get(kind) or draw(st.sampled_from(rows_of(kind)))
    # A text under ``system`` is a turn of the prompt in the formats of conversations, and written as such.
    own = OWN_KEYS[kind] | ({"system"} if kind in CONVERSATION_PAIRS else set())
    names = st.sampled_from([key for key in EXTRA_KEYS if key not in own])
    return row | draw(st.dictionaries(names, st.sampled_from([None, 3, "x", ["y"], {"z": 1}, True]), max_size=4))


@pytest.mark.parametrize("kind", [kind for kind in WRITTEN if kind != "cases"])
@settings(max_examples=30, deadline=None)
@given(data=st.data())
def test_a_row_comes_back_as_it_went_in(kind, data):
    row = data.draw(foreign_rows(kind))
    assert msgspec.json.decode(msgspec.json.encode(write(kind, read(kind, [row])))) == [row]


@pytest.mark.parametrize("target", [kind for kind in PAIRED if kind != "cases"])
@settings(max_examples=30, deadline=None)
@given(data=st.data())
def test_no_format_spoils_what_came_from_another(target, data):
    kind = data.draw(st.sampled_from(FOREIGN))
    cases = read(kind, [data.draw(foreign_rows(kind))])
    if len(texts_and_pairs(cases)) == 0:
        return
    dropped = Counter()
    rows = msgspec.json.decode(msgspec.json.encode(write(target, cases, dropped)))
    again = read(target, rows)
    if dropped["cases of another shape"]:
        assert again == []
        return
    if dropped["answers of several turns"]:  # of those, only the last turn is left
        pass
    else:
        assert texts_and_pairs(again) == texts_and_pairs(cases)
    first = cases[0].prompt.messages[0]
    # Formats of texts write a system turn under the key of that name.
    writes_system = first.role == "system" and any(row.get("system") == first.content for row in rows)
    meta = cases[0].prompt.meta or {}
    written = build("formats", target)
    is_read = getattr(written, "reads_text", lambda key, text: False)
    read_texts = {key for key, text in meta.items() if isinstance(text, str) and text and is_read(key, text)}
    read_texts |= set(getattr(written, "reserved_keys", ()))
    clashing = (OWN_KEYS[target] | read_texts | ({"system"} if writes_system else set())) & meta.keys()
    assert (dropped["prompt meta under keys of the format"] > 0) == bool(clashing)


PAIR_ROWS = [kind for kind in WRITTEN if has_pair_rows(build("formats", kind).supports)]


@pytest.mark.parametrize("kind", PAIR_ROWS)
@settings(max_examples=25, deadline=None)
@given(data=st.data())
def test_rows_that_were_joined_by_prompt_come_back(kind, data):
    some = data.draw(st.lists(foreign_rows(kind), min_size=1, max_size=3))
    rows = some + [{**row, "extra": number} for number, row in enumerate(some * 2)] + some
    groups = {}
    for number, one in enumerate(read(kind, rows)):
        groups.setdefault(prompt_key(one) or number, []).append(one)
    joined = [join_rows(group, Counter()) if len(group) > 1 else group[0] for group in groups.values()]
    assert len(joined) <= len(rows)
    back = msgspec.json.decode(msgspec.json.encode(write(kind, [row for one in joined for row in split_rows(one)])))
    assert Counter(map(canonical, back)) == Counter(map(canonical, rows))


def canonical(row):
    return msgspec.json.encode(row, order="deterministic")


LABEL = {"rater": "unknown", "kind": "human", "dimension": "label", "value": 1.0, "range": (0, 1)}
MIXED_TURNS = (
    [("user", "水的沸点？")],
    [("system", "كن موجزا"), ("user", "ما هي الجاذبية؟")],
    [("user", "שלום"), ("assistant", "नमस्ते"), ("user", "$x^2$?")],
    [("user", "Why?")],
)
COLUMNS = {
    "columns": {"prompt_column": "Frage", "chosen_column": "gut", "rejected_column": "schlecht"},
    "openrlhf": {"prompt_key": "question"},
}


def mixed_cases():
    """Cases of one and of several turns, the last with an answer of several; three answers, the first the best."""
    for number, prompt in enumerate(MIXED_TURNS):
        messages = tuple(Message(role=role, content=text) for role, text in prompt)
        responses = [Response(id=name, text=f"{name} {number}") for name in "abc"]
        if number == len(MIXED_TURNS) - 1:
            turns = (("assistant", "Because."), ("user", "Then?"), ("assistant", "So."))
            responses[0] = Response(id="a", messages=tuple(Message(role=role, content=text) for role, text in turns))
        ratings = tuple(Rating(response=name, **LABEL) for name in "abc")
        yield Case(
            prompt=Prompt(id=f"p{number}", messages=messages, subset="s"),
            responses=tuple(responses),
            ratings=ratings,
            ranking=(("a",), ("b", "c")),
            pairs=(Pair(better="a", worse="b", margin=0.5 if number else None), Pair(better="a", worse="c")),
        )


@pytest.mark.parametrize("kind", [kind for kind in WRITTEN if kind != "cases"])
def test_texts_and_conversations_are_written_in_columns_of_one_type(kind, tmp_path):
    write_cases(tmp_path / "c.jsonl", mixed_cases())
    config = Config(to_kind=kind, settings=COLUMNS.get(kind, {}))
    convert(tmp_path / "c.jsonl", tmp_path / "rows.jsonl", config)
    if kind in ("argilla", "potato"):  # records of JSON alone: they have objects without keys
        with pytest.raises(OutputError, match="no child field"):
            convert(tmp_path / "c.jsonl", tmp_path / "rows.parquet", config)
        return
    convert(tmp_path / "c.jsonl", tmp_path / "rows.parquet", config)
    if not (tmp_path / "rows.jsonl").stat().st_size:
        return
    lines = polars.read_ndjson(tmp_path / "rows.jsonl", infer_schema_length=None)
    table = polars.read_parquet(tmp_path / "rows.parquet")
    assert lines.height == table.height
    reader = build("formats", kind, COLUMNS.get(kind, {}))
    cases, others = (list(reader.read(read_rows(tmp_path / f"rows.{end}"), Counter())) for end in ("jsonl", "parquet"))
    assert texts_and_pairs(cases) == texts_and_pairs(others)
    if {
        "system turns",
        "earlier turns",
        "answers of several turns",
    } <= reader.supports and "rankings" in reader.supports:
        assert {one.prompt.messages for one in cases} == {one.prompt.messages for one in mixed_cases()}
