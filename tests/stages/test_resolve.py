import msgspec
import pytest

from reference_measures import as_written
from resolved_cases import resolve_cases
from steelyard.core.config import parse_settings, resolve_config
from steelyard.core.errors import ConfigError, EvidenceError, FileError, KindError, RecordError
from steelyard.core.types import Pair
from steelyard.io.cases import encode_case, read_cases, write_cases
from steelyard.ranking.judgment_table import Only
from steelyard.stages.resolve import Config, resolve
from strategies import case, judgment

TEXT = "杆秤 مرحبا שלום नमस्ते 日本語 👩‍👩‍👧 \\frac{a}{b}\n\tdef f(): \u2028"


def mixed():
    return [
        case(id="circle", responses="abcd", judgments=["a>b", "b>c", "c>a", "a>d"], text=TEXT, category=("数学",)),
        case(id="given", ranking=(("b",), ("a",))),
        case(id="nothing"),
        case(id="unread", judgments=["a?b"], ranking=(("b",), ("a",)), meta={"keep": TEXT}),
        case(id="part", judgments=["b>a"], pairs=(Pair(better="a", worse="b"),)),
        case(id="model", responses="ab", judgments=[judgment("b>a", judge="甲", kind="llm", batch="二")]),
    ]


@pytest.fixture
def file(tmp_path):
    write_cases(tmp_path / "cases.jsonl", mixed())
    return tmp_path / "cases.jsonl"


def test_only_the_ranking_is_new(file, tmp_path):
    run = resolve(file, tmp_path / "out")
    found = list(read_cases(tmp_path / "out" / "cases.jsonl"))
    assert [one.ranking for one in found] == [
        (("a", "b", "c"), ("d",)), (("b",), ("a",)), None, None, (("b",), ("a",)), (("b",), ("a",)),
    ]  # fmt: skip
    without = [msgspec.structs.replace(one, ranking=None) for one in found]
    assert without == [msgspec.structs.replace(one, ranking=None) for one in mixed()]
    assert (run.counts.num_in, run.counts.num_used, run.counts.dropped) == (6, 6, {})
    assert run.counts.noted == {
        "given": 1, "unranked_responses": 3, "without evidence": 1, "only unparsed": 1, "pairs kept": 1,
    }  # fmt: skip
    assert run.summary.unranked_responses == 3
    assert run.summary.conflicts.overall.ratio == 3 / 6
    assert run.summary.conflicts.by_judge["甲"].num_judgments == 1
    assert set(msgspec.structs.asdict(run.summary.conflicts)) == {
        "overall",
        "by_judge",
        "by_kind",
        "by_category",
        "by_subset",
        "by_language",
    }


def test_an_equal_run_is_not_repeated_and_another_is_not_overwritten(file, tmp_path, capsys):
    first = resolve(file, tmp_path / "out")
    assert resolve(file, tmp_path / "out") == first
    assert "finished already" in capsys.readouterr().err
    resolve(file, tmp_path / "out", Config(aggregate="majority"), force=True)


@pytest.mark.parametrize(
    ("only", "changed"),
    [
        (Only(kind=("llm",)), {"model"}),
        (Only(judge=("j",)), {"circle", "part", "unread"}),
        (Only(batch=("二",), kind=("llm", "human")), {"model"}),
    ],
)
def test_only_admitted_judgments_count(file, tmp_path, only, changed):
    run = resolve(file, tmp_path / "out", Config(only=only))
    before, after = (list(read_cases(path)) for path in (file, tmp_path / "out" / "cases.jsonl"))
    assert {one.prompt.id for one, new in zip(before, after, strict=True) if one != new} == changed
    assert all(one.judgments == new.judgments for one, new in zip(before, after, strict=True))
    assert run.config["only"]["kind"] == list(only.kind)


@pytest.mark.parametrize(
    ("only", "message"),
    [
        (Only(judge=("ann",)), "judge=ann admits no judgment\n  allowed: judge: j, 甲"),
        (Only(batch=("一",)), "allowed: batch: 二"),
        (Only(kind=("model",)), "allowed: kind: human, llm"),
    ],
)
def test_evidence_that_is_nowhere_is_refused_with_what_there_is(file, tmp_path, only, message):
    with pytest.raises(EvidenceError, match=message):
        resolve(file, tmp_path / "out", Config(only=only))
    assert not (tmp_path / "out" / "cases.jsonl").exists()
    assert not (tmp_path / "out" / "run.json").exists()


def test_no_judgments_at_all_is_no_error(tmp_path):
    write_cases(tmp_path / "c.jsonl", [case(ranking=(("a",),)), case(id="q")])
    run = resolve(tmp_path / "c.jsonl", tmp_path / "out")
    assert run.counts.noted == {"given": 1, "unranked_responses": 0, "without evidence": 1}
    assert run.summary.conflicts.overall.ratio is None
    assert (tmp_path / "out" / "cases.jsonl").read_bytes() == (tmp_path / "c.jsonl").read_bytes()


def test_a_majority_is_asked_for_by_the_setting(tmp_path):
    votes = [judgment(short, judge=str(index)) for index, short in enumerate(["a>b", "a>b", "b>a"])]
    write_cases(tmp_path / "c.jsonl", [case(responses="ab", judgments=votes)])
    resolve(tmp_path / "c.jsonl", tmp_path / "plain")
    run = resolve(tmp_path / "c.jsonl", tmp_path / "voted", Config(aggregate="majority"))
    rankings = [next(read_cases(tmp_path / name / "cases.jsonl")).ranking for name in ("plain", "voted")]
    assert rankings == [(("a", "b"),), (("a",), ("b",))]
    assert run.summary.conflicts.overall.num_conflicting == 1


@pytest.mark.parametrize(
    ("again", "ranking", "repeated"),
    [
        (("a>b", {}), (("b",), ("a",)), 2),
        (("b<a", {}), (("b",), ("a",)), 2),
        (("a>b", {"meta": {"说明": TEXT}}), (("a", "b"),), 1),
        (("a>b", {"meta": {"label": "A", "time": 2.0}}), (("b",), ("a",)), 2),
        (("b<a", {"meta": {"label": "B", "row": {"annotation_id": 7, "lead_time": 3.1}}}), (("b",), ("a",)), 2),
        (("a>b", {"meta": {"row": {"criterion": "style"}}}), (("a", "b"),), 1),
        (("a>b", {"kind": "llm", "meta": {"time": 2.0}}), (("a", "b"),), 1),
        (("a>b", {"task": "second"}), (("a", "b"),), 1),
    ],
)
def test_identical_judgments_of_one_judge_vote_once(tmp_path, again, ranking, repeated):
    short, fields = again
    rows = [judgment("a>b", judge="甲")] + [judgment(short, judge="甲", **fields)] * 2
    votes = [*rows, judgment("b>a", judge="乙"), judgment("b>a", judge="丙")]
    write_cases(tmp_path / "c.jsonl", [case(responses="ab", judgments=votes)])
    run = resolve(tmp_path / "c.jsonl", tmp_path / "voted", Config(aggregate="majority"))
    assert next(read_cases(tmp_path / "voted" / "cases.jsonl")).ranking == ranking
    assert run.counts.noted["judgments that repeat an identical one"] == repeated
    assert run.summary.conflicts.overall.num_judgments == 5 - repeated


def test_many_batches_in_processes_give_what_one_process_gives(tmp_path):
    shorts = ["a>b", "b>c", "c>a", "d=e", "a<d", "b?e", "c>e", "d>b"]
    many = [
        case(
            id=f"p{index}",
            text=TEXT,
            language="zh" if index % 3 else None,
            judgments=[
                judgment(short, judge=f"judge {place % 3}")
                for place, short in enumerate(shorts)
                if (index >> place) % 2
            ],
        )
        for index in range(700)
    ]
    write_cases(tmp_path / "c.jsonl", many)
    one, two = (resolve(tmp_path / "c.jsonl", tmp_path / str(workers), workers=workers) for workers in (1, 2))
    expected, _ = resolve_cases(many)
    assert list(read_cases(tmp_path / "2" / "cases.jsonl")) == list(expected)
    assert (one.outputs, one.counts, one.summary) == (two.outputs, two.counts, two.summary)


def test_parquet_is_read_as_well(file, tmp_path):
    write_cases(tmp_path / "c.parquet", read_cases(file))
    from_lines = resolve(file, tmp_path / "lines")
    from_table = resolve(tmp_path / "c.parquet", tmp_path / "table")
    assert from_table.outputs == from_lines.outputs
    assert from_table.summary == from_lines.summary


def test_lines_in_another_order_of_keys_come_out_as_ours(tmp_path):
    given = case(responses="ab", judgments=["a>b"])
    columns = msgspec.json.decode(encode_case(given))
    (tmp_path / "c.jsonl").write_bytes(msgspec.json.encode(dict(sorted(columns.items()))))  # no newline at the end
    resolve(tmp_path / "c.jsonl", tmp_path / "out")
    expected = msgspec.structs.replace(given, ranking=(("a",), ("b",)))
    assert (tmp_path / "out" / "cases.jsonl").read_bytes() == encode_case(expected)


GOOD = [encode_case(case(id=f"p{index}", judgments=["a>b"])) for index in range(3)]

SHOWN = encode_case(case(id="shown", judgments=[judgment("a>b", shown=("a", "b"))]))


@pytest.mark.parametrize(
    ("lines", "error", "message"),
    [
        ([*GOOD, GOOD[0][:60]], RecordError, r"c\.jsonl:4: the line is cut off"),
        ([GOOD[0], b"[1, 2]\n"], RecordError, r"c\.jsonl:2"),
        ([GOOD[0], b"\n", GOOD[1].replace(b':"left"', b':"won"')], RecordError, r"c\.jsonl:3 at judgments"),
        ([GOOD[0], GOOD[1].replace(b'"left":"a"', b'"left":"z"')], RecordError, r"c\.jsonl:2: .*'z'"),
        ([GOOD[0].replace(b'"left":"a"', b'"left":"b"'), b"{}\n"], RecordError, r"c\.jsonl:1: .*with itself"),
        ([GOOD[0], SHOWN.replace(b'"shown":["a"', b'"shown":["z"')], RecordError, r"c\.jsonl:2: .*shown.*'z'"),
        ([GOOD[0].replace(b':"b"', b':"a"', 1)], RecordError, r"c\.jsonl:1: .*given twice"),
        (
            [GOOD[0], GOOD[1], GOOD[0]],
            RecordError,
            r"c\.jsonl:3: prompt id 'p0', language None, is already used at .*c\.jsonl:1",
        ),
        ([GOOD[0], b'{"prompt":{"id":"\xff"}}\n'], FileError, r"c\.jsonl:2: byte 18 is not UTF-8"),
        ([b""], FileError, "the file is empty"),
        ([b" \n\n"], FileError, "blank lines only"),
        ([b"version https://git-lfs.github.com/spec/v1\noid sha256:0\n"], FileError, "git-LFS pointer"),
    ],
)
def test_a_broken_file_is_refused_with_its_line_and_nothing_is_left(tmp_path, lines, error, message):
    (tmp_path / "c.jsonl").write_bytes(b"".join(lines))
    with pytest.raises(error, match=message):
        resolve(tmp_path / "c.jsonl", tmp_path / "out")
    left = list((tmp_path / "out").iterdir()) if (tmp_path / "out").exists() else []
    assert [path.name for path in left if path.name != "started.json"] == []


def test_a_table_without_rows_is_refused(tmp_path):
    write_cases(tmp_path / "c.parquet", [])
    with pytest.raises(EvidenceError, match="holds no cases"):
        resolve(tmp_path / "c.parquet", tmp_path / "out")


def test_an_error_in_a_worker_names_the_line_too(tmp_path):
    (tmp_path / "c.jsonl").write_bytes(b"".join([*GOOD, b"{}\n"]))
    with pytest.raises(RecordError, match=r"c\.jsonl:4"):
        resolve(tmp_path / "c.jsonl", tmp_path / "out", workers=2)
    assert not (tmp_path / "out" / "cases.jsonl").exists()


def test_an_absent_file_and_senseless_workers_are_refused(file, tmp_path):
    with pytest.raises(FileError, match="no such file"):
        resolve(tmp_path / "absent.jsonl", tmp_path / "out")
    assert not (tmp_path / "out").exists()
    with pytest.raises(ConfigError, match="workers=-2"):
        resolve(file, tmp_path / "out", workers=-2)


def test_an_engine_that_does_not_exist_is_refused_before_anything_is_written(file, tmp_path):
    with pytest.raises(KindError, match="there is no 'rai' in engines"):
        resolve(file, tmp_path / "out", engine="rai")
    assert not (tmp_path / "out").exists()


def authored(one):
    responses = tuple(
        msgspec.structs.replace(response, author=f"model {response.id}", text="字" * (3 + index * 5))
        for index, response in enumerate(one.responses)
    )
    return msgspec.structs.replace(one, responses=responses)


def many(number=600):
    """Two people and an LLM on a and b of each prompt; bob disagrees with ann on every fifth; the LLM likes b."""
    for index in range(number):
        ann, bob = (
            "a>b" if index % 2 else "b>a",
            "b>a" if index % 2 and not index % 5 else "a>b" if index % 2 else "b>a",
        )
        judgments = [
            judgment(ann, judge="ann", shown=("a", "b")),
            judgment(bob, judge="bob", shown=("b", "a")),
            judgment("b>a", judge="llm", kind="llm", shown=("a", "b", "c")),
            judgment("b>c", judge="llm", kind="llm", shown=("a", "b", "c")),
        ]
        language = "zh" if index % 3 else "de"
        yield authored(case(id=f"p{index}", responses="abc", judgments=judgments, language=language))


def summary_of(file, out, config=Config(), workers=1):  # noqa: B008 - a frozen value
    """The summary as it is written."""
    return as_written(resolve(file, out, config, workers=workers).summary)


@pytest.fixture(scope="module")
def judged_file(tmp_path_factory):
    path = tmp_path_factory.mktemp("given") / "cases.jsonl"
    write_cases(path, many())
    return path


@pytest.fixture(scope="module")
def summary(judged_file, tmp_path_factory):
    return summary_of(judged_file, tmp_path_factory.mktemp("out") / "run")


def test_the_sections_of_the_summary_by_hand(summary):
    judges, agreement = summary["judges"]["by_judge"], summary["agreement"]
    assert set(judges) == {"ann", "bob", "llm"}
    assert set(summary["judges"]["by_kind"]) == {"human", "llm"}
    assert (judges["ann"]["num_judgments"], judges["llm"]["num_judgments"]) == (600, 1200)
    # ann prefers a, shown first, in half of the prompts; bob is shown b first: a in half, less one in ten.
    assert judges["ann"]["position"]["earlier"]["value"] == 0.5
    assert judges["bob"]["position"]["earlier"]["value"] == pytest.approx(0.5 + 0.1)
    # b is longer than a (8 to 3 characters: 0.625 of the longer), c longer than b.
    assert judges["ann"]["length"]["longer"]["value"] == 0.5
    assert judges["llm"]["length"]["longer"]["value"] == 0.5  # b over a, b over c
    first = next(one for one in agreement["judges"] if one["judges"] == ["ann", "bob"])
    assert first["agreement"]["value"] == pytest.approx(0.9)
    assert first["agreement"]["low"] < 0.9 < first["agreement"]["high"]
    assert summary["authors"]["strengths"][0]["author"] == "model b"
    assert summary["authors"]["num_verdicts"] == 2400


def test_the_ratios_with_intervals_are_those_of_the_report(summary):
    conflicts = summary["conflicts"]
    for by in ("by_judge", "by_kind", "by_language", "by_category"):
        for record in conflicts[by].values():
            assert record["ratio_low"] <= record["ratio"] <= record["ratio_high"]
    assert conflicts["overall"]["ratio_low"] < conflicts["overall"]["ratio"] < conflicts["overall"]["ratio_high"]
    for by in ("by_judge", "by_kind"):
        for name, record in conflicts[by].items():
            assert summary["judges"][by][name]["conflict_ratio"]["value"] == pytest.approx(record["ratio"])


def test_processes_change_nothing(judged_file, summary, tmp_path):
    assert summary_of(judged_file, tmp_path / "two", workers=2) == summary


def test_without_quality_only_the_conflicts_are_told(judged_file, summary, tmp_path):
    found = summary_of(judged_file, tmp_path / "off", Config(quality=False))
    assert set(found) == {"conflicts", "unranked_responses", "share_ordered_by_majority"}
    assert "ratio_low" not in found["conflicts"]["overall"]
    assert found["conflicts"]["overall"]["ratio"] == summary["conflicts"]["overall"]["ratio"]


def test_the_seed_moves_the_intervals_and_nothing_else(judged_file, summary, tmp_path):
    found = summary_of(judged_file, tmp_path / "seed", Config(seed=1))
    one, other = (of["judges"]["by_judge"]["bob"]["position"]["earlier"] for of in (found, summary))
    assert (one["value"], one["n"]) == (other["value"], other["n"])
    assert one != other


def test_only_admitted_judgments_are_measured(judged_file, tmp_path):
    found = summary_of(judged_file, tmp_path / "only", Config(only=Only(kind=("llm",))))
    assert set(found["judges"]["by_judge"]) == {"llm"}
    assert found["agreement"]["judges"] == []
    assert found["judges"]["by_judge"]["llm"]["position"]["places"][0]["num_shown"] == 3


def test_settings_by_hand():
    settings = parse_settings(["quality=false", "author_ties=davidson", "only.kind=['human']"])
    found = resolve_config(Config, settings, where="resolve")
    assert (found.quality, found.author_ties, found.only.kind) == (False, "davidson", ("human",))
    assert Config().quality
    assert Config().aggregate == "none"


def test_dawid_skene_reads_the_file_twice_and_reports_the_judges(judged_file, tmp_path):
    run = resolve(judged_file, tmp_path / "out", Config(aggregate="dawid-skene"), workers=1)
    fitted = run.summary.rater_model
    assert fitted.model == "dawid-skene"
    assert set(fitted.by_judge) == {"ann", "bob", "llm"}
    assert all(0 < judge.strict <= 1 and 0 < judge.tie <= 1 for judge in fitted.by_judge.values())
    assert run.summary.conflicts.overall.num_judgments == 2400
    assert all(one.ranking is not None for one in read_cases(tmp_path / "out" / "cases.jsonl"))


def test_without_a_rater_model_the_summary_has_none(summary):
    assert "rater_model" not in summary
