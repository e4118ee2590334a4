import json

import pytest
from msgspec.structs import replace

from steelyard.core.errors import EvidenceError, FileError, RecordError
from steelyard.core.types import Response
from steelyard.evaluation.evaluations import read_evaluations
from steelyard.io.cases import write_cases
from steelyard.stages.evaluate import Config, evaluate
from strategies import case


@pytest.fixture
def bench(tmp_path):
    path = tmp_path / "bench.jsonl"
    ranking = (("a",), ("b", "c"))
    write_cases(path, [case(f"p{index}", "abc", ranking=ranking) for index in range(6)] + [case("no pair", "ab")])
    return path


def evaluated(bench, out, model="longer", **settings):
    evaluate([bench], out, Config(**{"num_resamples": 5, "baselines": ()} | settings), model=model)
    return out


def test_evaluations_stand_side_by_side_and_are_told_apart(bench, tmp_path):
    folders = [evaluated(bench, tmp_path / name, model) for name, model in (("1", "longer"), ("2", "random"))]
    found = read_evaluations([*folders, evaluated(bench, tmp_path / "3", "longer", num_resamples=6)])
    assert [one.name for one in found.evaluated] == [
        f"longer ({tmp_path / '1'})", "random", f"longer ({tmp_path / '3'})"
    ]  # fmt: skip
    assert found.evaluated[0].statistics.tolist() == [[2, 0, 1, 0]] * 6
    assert found.layout.strata[0].num_units == 6


def test_prompts_that_a_bench_draws_together_are_laid_out_together(tmp_path):
    cases = [
        case(f"BoN_set/{name}", "ab", text=text, subset="BoN_set", category=("Helpfulness",), ranking=(("a",), ("b",)))
        for name, text in (("1", "甲"), ("2", "乙"), ("3", "甲"))
    ]
    write_cases(tmp_path / "bench.jsonl", cases)
    folders = [
        evaluated(tmp_path / "bench.jsonl", tmp_path / name, name, bench_kind="rmb") for name in ("longer", "first")
    ]
    found = read_evaluations(folders)
    assert [label.prompt for label in found.labels] == ["BoN_set/1", "BoN_set/2", "BoN_set/1"]
    assert [stratum.num_units for stratum in found.layout.strata] == [2]


def test_unlike_evaluations_are_refused(bench, tmp_path):
    first = evaluated(bench, tmp_path / "1")
    other = evaluated(bench, tmp_path / "2", metric_compat="cheems")
    with pytest.raises(EvidenceError, match='2: metric_compat is "cheems" here and null in '):
        read_evaluations([first, other])
    with pytest.raises(EvidenceError, match=r"matched_ratio is 1\.5 here and 1\.1 in "):
        read_evaluations([first, evaluated(bench, tmp_path / "like", matched_ratio=1.5)])
    fewer = tmp_path / "fewer.jsonl"
    fewer.write_text("".join(bench.read_text("utf-8").splitlines(keepends=True)[1:]), encoding="utf-8")
    with pytest.raises(EvidenceError, match=r"the prompts are not those of .*: only one of them has prompt 'p0'"):
        read_evaluations([first, evaluated(fewer, tmp_path / "3")])
    turned = tmp_path / "turned.jsonl"
    turned.write_text("".join(reversed(bench.read_text("utf-8").splitlines(keepends=True))), encoding="utf-8")
    with pytest.raises(EvidenceError, match="the pairs, or their order, differ"):
        read_evaluations([first, evaluated(turned, tmp_path / "4")])


def translated(tmp_path, name, texts):
    """The evaluation of a bench of one prompt for each pair of texts, better first."""
    cases = []
    for index, (better, worse) in enumerate(texts):
        responses = (Response(id="a", text=better), Response(id="b", text=worse))
        cases.append(replace(case(f"p{index}", ranking=(("a",), ("b",))), responses=responses))
    write_cases(tmp_path / f"{name}.jsonl", cases)
    return evaluated(tmp_path / f"{name}.jsonl", tmp_path / name)


def test_prompts_with_equal_texts_in_one_evaluation_are_left_out_of_both(tmp_path):
    native = translated(tmp_path, "native", [("长的", "短"), ("短", "长的"), ("长的", "短"), ("短", "长的")])
    english = translated(tmp_path, "english", [("longer", "short"), ("short", "longer"), ("x", "x "), ("a", "bc")])
    for folders in ([native, english], [english, native]):
        found = read_evaluations(folders)
        assert [label.prompt for label in found.labels] == ["p0", "p1", "p3"]
        assert [one.statistics.tolist() for one in found.evaluated] == [[[1, 1, 1, 1], [1, 0, 1, 0], [1, 0, 1, 0]]] * 2
        assert found.num_unshared == 1
    # Fewer pairs for another reason are another benchmark.
    cases = [case(f"p{index}", "abc", ranking=(("a",), ("b", "c"))) for index in range(4)]
    write_cases(tmp_path / "more.jsonl", cases)
    with pytest.raises(EvidenceError, match="the pairs, or their order, differ"):
        read_evaluations([english, evaluated(tmp_path / "more.jsonl", tmp_path / "more")])


def test_other_folders_are_named(bench, tmp_path):
    first = evaluated(bench, tmp_path / "1")
    with pytest.raises(FileError, match="holds no finished run"):
        read_evaluations([first, tmp_path / "nothing"])
    items = first / "items.jsonl"
    items.write_text(items.read_text("utf-8") + '{"prompt": 3}\n', encoding="utf-8")
    with pytest.raises(RecordError, match=r"items\.jsonl:8: the line is not an item"):
        read_evaluations([first, first])


def test_an_evaluation_with_most_pairs_unscored_has_nothing_to_compare(bench, tmp_path):
    scores = tmp_path / "scores.jsonl"
    written = (evaluated(bench, tmp_path / "1") / "scores.jsonl").read_text("utf-8")
    lines = [json.loads(line) for line in written.splitlines()]
    for line in lines:
        line["scores"]["a"], line["unscored"] = None, {"a": "refused"}
    scores.write_text("".join(json.dumps(line) + "\n" for line in lines), encoding="utf-8")
    config = Config(num_resamples=5, baselines=(), allow_unscored=True)
    evaluate([bench], tmp_path / "2", config, scores=scores)
    with pytest.raises(EvidenceError, match="most pairs have no score"):
        read_evaluations([tmp_path / "1", tmp_path / "2"])
