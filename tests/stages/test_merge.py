import signal
import tracemalloc
from collections import Counter

import msgspec
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

import warm_process
from steelyard.core.errors import ConfigError, RecordError
from steelyard.core.types import Response
from steelyard.curation.merge import union
from steelyard.io.cases import read_cases, write_cases
from steelyard.stages.merge import Config, merge
from strategies import case, judgment


def test_files_are_joined_by_id_and_language(tmp_path):
    write_cases(tmp_path / "a.jsonl", [case(id="x", judgments=["a>b"]), case(id="y")])
    write_cases(
        tmp_path / "b.jsonl", [case(id="x", judgments=[judgment("b>a", kind="llm")]), case(id="x", language="zh")]
    )
    run = merge([tmp_path / "a.jsonl", tmp_path / "b.jsonl"], tmp_path / "out")
    merged = list(read_cases(tmp_path / "out" / "cases.jsonl"))
    assert [one.key for one in merged] == [("x", None), ("y", None), ("x", "zh")]
    assert [one.kind for one in merged[0].judgments] == ["human", "llm"]
    assert (run.counts.num_in, run.counts.noted, run.summary.num_cases) == (4, {"joined": 1}, 3)
    assert merge([tmp_path / "a.jsonl", tmp_path / "b.jsonl"], tmp_path / "out") == run


def test_what_contradicts_is_refused_naming_both_files(tmp_path):
    write_cases(tmp_path / "a.jsonl", [case(text="one")])
    write_cases(tmp_path / "b.jsonl", [case(text="two")])
    with pytest.raises(RecordError, match=r"a\.jsonl and .*b\.jsonl: prompt 'p' has two different texts"):
        merge([tmp_path / "a.jsonl", tmp_path / "b.jsonl"], tmp_path / "out")
    assert not (tmp_path / "out").exists()
    with pytest.raises(ConfigError, match="one file to merge"):
        merge([tmp_path / "a.jsonl"], tmp_path / "out")


def test_sources_that_number_their_prompts_alike_stay_apart(tmp_path):
    for name, texts in (("AlignBench", ("one", "two")), ("HalluQA", ("three", "four"))):
        cases = [case(id=str(number), text=text, source=name) for number, text in enumerate(texts, 1)]
        write_cases(tmp_path / f"{name}.jsonl", [*cases, case(id="p", text="without a source")])
    files = [tmp_path / "AlignBench.jsonl", tmp_path / "HalluQA.jsonl"]
    with pytest.raises(RecordError, match=r"prompt '1' has two different texts(?s:.)*do: say ids=by_source"):
        merge(files, tmp_path / "out")
    run = merge(files, tmp_path / "out", Config(ids="by_source"))
    merged = [(one.prompt.id, one.prompt.messages[0].content) for one in read_cases(tmp_path / "out" / "cases.jsonl")]
    assert merged == [
        ("AlignBench/1", "one"),
        ("AlignBench/2", "two"),
        ("p", "without a source"),
        ("HalluQA/1", "three"),
        ("HalluQA/2", "four"),
    ]
    assert run.counts.noted == {"joined": 1}


def test_the_file_that_contradicts_is_named_among_three(tmp_path):
    other = msgspec.structs.replace(case(), responses=(Response(id="a", text="other"),))
    write_cases(tmp_path / "a.jsonl", [case(responses="ab")])
    write_cases(tmp_path / "b.jsonl", [case(responses="d")])
    write_cases(tmp_path / "c.jsonl", [other])
    with pytest.raises(
        RecordError, match=r"a\.jsonl and .*c\.jsonl: response 'a' of prompt 'p' has two different texts"
    ):
        merge([tmp_path / f"{name}.jsonl" for name in "abc"], tmp_path / "out")


def test_no_third_ranking_decides_between_two(tmp_path):
    for name, ranking in (("a", (("a",), ("b",))), ("b", (("b",), ("a",))), ("c", (("a", "b"),))):
        write_cases(tmp_path / f"{name}.jsonl", [case(ranking=ranking)])
    run = merge([tmp_path / f"{name}.jsonl" for name in "abc"], tmp_path / "out")
    (merged,) = read_cases(tmp_path / "out" / "cases.jsonl")
    assert merged.ranking is None
    assert run.counts.noted == {"joined": 2, "rankings that differ": 1}


def one(name, said, ranking):
    return case(id=name, judgments=[judgment(said, judge=f"rater {said}")], ranking=ranking)


CASES = st.builds(
    one,
    st.sampled_from(["x", "y", "z"]),
    st.sampled_from(["a>b", "b>a", "a=b"]),
    st.sampled_from([None, (("a",), ("b",)), (("b",), ("a",)), (("a", "b"),)]),
)
FILES = st.lists(st.lists(CASES, max_size=3, unique_by=lambda made: made.key), min_size=2, max_size=5)


@settings(deadline=None, max_examples=40)
@given(FILES.filter(all))
def test_many_files_come_to_what_they_come_to_in_memory(tmp_path_factory, files):
    folder = tmp_path_factory.mktemp("merge")
    paths = [folder / f"{number}.jsonl" for number in range(len(files))]
    merged, disputed, noted = {}, set(), Counter()
    for path, own in zip(paths, files, strict=True):
        write_cases(path, own)
        for given_case in own:
            known = merged.get(given_case.key)
            if known is None:
                merged[given_case.key] = given_case
                continue
            noted["joined"] += 1
            added = msgspec.structs.replace(given_case, ranking=None) if given_case.key in disputed else given_case
            merged[given_case.key] = union(known, added, noted)
            if known.ranking and added.ranking and merged[given_case.key].ranking is None:
                disputed.add(given_case.key)
    run = merge(paths, folder / "out")
    assert list(read_cases(folder / "out" / "cases.jsonl")) == list(merged.values())
    assert run.counts.noted == +noted
    assert run.counts.num_in == sum(map(len, files))
    assert sorted(path.name for path in (folder / "out").iterdir()) == ["cases.jsonl", "run.json"]


def big(name, said):
    made = case(id=name, judgments=[judgment(said)])
    texts = tuple(msgspec.structs.replace(response, text=response.id * 3000) for response in made.responses)
    return msgspec.structs.replace(made, responses=texts)


@pytest.mark.slow
def test_memory_does_not_hold_the_cases(tmp_path):
    for name, said in (("a", "a>b"), ("b", "b>a")):
        write_cases(tmp_path / f"{name}.jsonl", (big(f"p{index}", said) for index in range(3000)))
    tracemalloc.start()
    merge([tmp_path / "a.jsonl", tmp_path / "b.jsonl"], tmp_path / "out")
    _, peak = tracemalloc.get_traced_memory()
    tracemalloc.stop()
    # Some 16 MB are used whatever the files hold (512 lines are read at a time), and of each key a digest and a place.
    assert (tmp_path / "a.jsonl").stat().st_size > 18_000_000
    assert peak < 24_000_000
    assert [len(made.judgments) for made in read_cases(tmp_path / "out" / "cases.jsonl")] == [2] * 3000


DIES = """
import os, signal, sys
from pathlib import Path
from steelyard.stages.merge import Config, merge

def kill(event, args):
    if event == "os.rename" and str(args[1]).endswith(sys.argv[1]):
        os.kill(os.getpid(), signal.SIGKILL)

sys.addaudithook(kill)
merge([Path("a.jsonl"), Path("b.jsonl")], Path("out"))
"""


@pytest.mark.slow
@pytest.mark.parametrize("dies_before", ["cases.jsonl", "run.json"])
def test_a_run_that_is_killed_is_done_again(tmp_path, dies_before, monkeypatch):
    write_cases(tmp_path / "a.jsonl", [case(id="x", judgments=["a>b"]), case(id="y")])
    write_cases(tmp_path / "b.jsonl", [case(id="x", judgments=["b>a"])])
    monkeypatch.chdir(tmp_path)
    killed = warm_process.run("-c", DIES, dies_before)
    assert killed.returncode == -signal.SIGKILL
    assert not (tmp_path / "out" / "run.json").exists()
    run = merge([tmp_path / "a.jsonl", tmp_path / "b.jsonl"], tmp_path / "out")
    assert (run.counts.num_in, run.summary.num_cases) == (3, 2)
    assert sorted(path.name for path in (tmp_path / "out").iterdir()) == ["cases.jsonl", "run.json"]


def test_one_language_in_several_spellings_is_one_and_regions_stay_apart(tmp_path):
    spellings = (("en", "EN"), ("zh-CN", "Chinese"), ("pt-BR", "pt-PT"), ("zh-Hant", "zh_TW"), (None, "en"))
    for file, place in (("a", 0), ("b", 1)):
        cases = [case(id=f"{number}", language=each[place]) for number, each in enumerate(spellings)]
        write_cases(tmp_path / f"{file}.jsonl", cases)
    run = merge([tmp_path / "a.jsonl", tmp_path / "b.jsonl"], tmp_path / "out")
    assert [one.key for one in read_cases(tmp_path / "out" / "cases.jsonl")] == [
        ("0", "en"), ("1", "zh-CN"), ("2", "pt-BR"), ("3", "zh-Hant"), ("4", None), ("2", "pt-PT"), ("4", "en")
    ]  # fmt: skip
    assert run.counts.noted == {"joined": 3, "languages in another spelling": 3}
