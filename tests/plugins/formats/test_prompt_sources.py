"""Published sets of prompts: their references, languages, categories and ids."""

import json
from collections import Counter
from pathlib import Path

import pytest

from steelyard.core.errors import KindError, Place, RecordError
from steelyard.core.plugins import build
from steelyard.core.protocols import Row
from steelyard.evaluation.recognition import recognise
from steelyard.io.cases import read_cases
from steelyard.io.rows import read_rows
from steelyard.plugins.formats.prompt_sources import UNMAPPED
from steelyard.stages.convert import Config, convert

GOLDEN = Path(__file__).parents[2] / "golden" / "formats"


def golden(kind, warnings=None):
    (path,) = GOLDEN.glob(f"{kind}.*")
    return list(build("formats", kind).read(read_rows(path), Counter() if warnings is None else warnings))


@pytest.mark.parametrize(
    ("kind", "id", "language", "category", "source", "reference"),
    [
        ("alignbench", "1", "zh", ("knowledge", "geography"), "AlignBench", "塔里木河。"),
        ("clib", None, "zh", ("understanding", "classification"), "CLiB", "物流"),
        ("coig_cqia", None, "zh", ("knowledge", "everyday"), "COIG-CQIA", "粽子起于祭祀，后来多说是为了纪念屈原。"),
        ("flames", None, "zh", ("safety", "fairness"), "Flames", None),
        ("gaokao_bench", None, "zh", ("mathematics", "elementary"), "GAOKAO-Bench", "C"),
        ("halluqa", "1", "zh", ("knowledge", "misconceptions"), "HalluQA", "太阳从不从西边升起。"),
        ("humaneval_xl", "python/900", "zh", ("code", "code_completion"), "HumanEval-XL", "    return 2 * x\n"),
        ("mathoctopus", None, None, ("mathematics", "word_problems"), "MathOctopus", "13.0"),
    ],
)
def test_the_first_row_has_its_reference_category_language_and_source(kind, id, language, category, source, reference):
    prompt = golden(kind)[0].prompt
    assert id is None or prompt.id == id
    assert (prompt.language, prompt.category, prompt.source, prompt.reference) == (
        language,
        category,
        source,
        reference,
    )


def test_how_a_category_was_assigned_is_recorded():
    warnings = Counter()
    first, *_, unknown = golden("alignbench", warnings)
    assert first.meta["category_from"] == {
        "by": "source", "source": "alignbench", "category": ["专业能力", "地理"], "known": True,
    }  # fmt: skip
    assert unknown.prompt.category == ("新的类别", "其他")
    assert unknown.meta["category_from"]["known"] is False
    assert warnings[UNMAPPED] == 1


def test_the_text_of_an_input_is_part_of_the_question():
    assert golden("coig_cqia")[1].prompt.messages[0].content == "给下面这段话拟一个标题。\n村口的老桥修好了。"


@pytest.mark.parametrize(
    ("task", "category", "is_known"),
    [
        ({"major": ["问答"], "minor": ["论坛问答"]}, ("knowledge",), True),
        ({"major": "问答"}, ("knowledge",), True),
        ({"major": ["对联"], "minor": []}, ("对联",), False),
    ],
)
def test_task_types_are_lists_or_texts_and_further_fields_stay(task, category, is_known, tmp_path):
    row = {"instruction": "怎样选一把合手的锄头？", "input": "", "output": "看柄长。", "task_type": task}
    row |= {
        "domain": ["通用"],
        "metadata": "编号：1",
        "answer_from": "human",
        "human_verified": True,
        "copyright": "示例",
    }
    (tmp_path / "rows.jsonl").write_text(json.dumps(row, ensure_ascii=False), encoding="utf-8")
    assert recognise(tmp_path / "rows.jsonl") == "coig_cqia"
    reader = build("formats", "coig_cqia")
    (case,) = reader.read([Row(Place("f", 1), row)], Counter())
    assert (case.prompt.category, case.prompt.reference) == (category, "看柄长。")
    assert case.meta["category_from"]["known"] is is_known


def test_several_answers_are_lines_of_the_reference():
    row = {"question": "q", "answer": ["A", "C"], "keywords": "2010-2022_English_Reading_Comp", "year": "2011"}
    row |= {"analysis": "", "index": 1, "score": 2}
    (case,) = build("formats", "gaokao_bench").read([Row(Place("f", 1), row)], Counter())
    assert case.prompt.reference == "A\nC"


def test_parallel_prompts_share_their_id_and_differ_in_language():
    first, second = golden("humaneval_xl")
    assert (first.prompt.id, second.prompt.language) == (second.prompt.id, "af")


def test_wrong_answers_stay_with_the_prompt():
    meta = golden("halluqa")[0].prompt.meta
    assert (meta["Wrong_Answer1"], meta["Best Answer2"]) == ("五月一日。", "没有这样的一天。")


@pytest.mark.parametrize("kind", ["halluqa", "mathoctopus"])
def test_rows_that_are_not_recognised_name_the_option(kind, tmp_path):
    (path,) = GOLDEN.glob(f"{kind}.*")
    row = [row.value for row in read_rows(path)][-1]
    (tmp_path / "rows.jsonl").write_text(json.dumps(row))
    with pytest.raises(KindError, match=f"say from_kind={kind} if these are the prompts of that published set"):
        recognise(tmp_path / "rows.jsonl")


@pytest.mark.parametrize(
    ("kind", "change"),
    [
        ("alignbench", {"question": 3}), ("alignbench", {"question_id": 1.5}), ("alignbench", {"reference": {"a": 1}}),
        ("humaneval_xl", {"natural_language": "klingon!"}), ("gaokao_bench", {"answer": [1]}),
        ("coig_cqia", {"input": 3}),
    ],
)  # fmt: skip
def test_a_broken_field_is_refused_with_its_line(kind, change):
    (path,) = GOLDEN.glob(f"{kind}.*")
    row = next(read_rows(path)).value | change
    with pytest.raises(RecordError, match=r"^f:1"):
        list(build("formats", kind).read([Row(Place("f", 1), row)], Counter()))


DATA = Path(__file__).parents[4] / "shared" / "data"


@pytest.mark.field
@pytest.mark.parametrize(
    ("path", "kind", "number"), [("halluqa/HalluQA.json", "halluqa", 450), ("humaneval_xl_python/data", None, 1840)]
)
def test_published_sets_come_in_and_go_back(path, kind, number, tmp_path):
    if not (DATA / path).exists():
        pytest.skip(f"the folder {path} of real data is absent")
    done = convert(DATA / path, tmp_path / "cases.jsonl", Config(from_kind=kind))
    cases = list(read_cases(tmp_path / "cases.jsonl"))
    assert len(cases) == done.num_cases == number
    assert all(case.prompt.reference and case.meta["category_from"]["known"] for case in cases)
    back = convert(tmp_path / "cases.jsonl", tmp_path / "back.jsonl", Config(to_kind=done.from_kind))
    assert (back.num_written, back.lost) == (number, {})
