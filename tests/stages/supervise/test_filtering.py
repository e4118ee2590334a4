from steelyard.core.types import Pair, Scores
from steelyard.curation.supervised import Rule, margins
from steelyard.io.cases import read_cases
from steelyard.io.run_folder import result_folder
from steelyard.stages.supervise.filtering import write_supervised
from supervision_files import judged, read_lines


def test_everything_is_counted_once(tmp_path):
    scored = judged("p", llm=("a>b", "b>a", "a=b"), human=("a>b",))
    unscored = judged("q", llm=("a>b",))
    listed = judged("r", llm=("a>b",))
    listed = type(listed)(
        prompt=listed.prompt, responses=listed.responses, judgments=listed.judgments,
        pairs=(Pair(better="b", worse="a"),),
    )  # fmt: skip
    nothing = judged("s", llm=())
    cases = (scored, unscored, listed, nothing)
    given = [{"a": 2.0, "b": 1.0, "c": 0.0}, {"a": None, "b": 1.0, "c": 0.0}, {"a": 2.0, "b": 1.0, "c": 0.0}] * 2
    lines = [
        Scores(prompt=one.prompt.id, language="zh", scores=own, unscored={"a": "cut"} if own["a"] is None else {})
        for one, own in zip(cases, given, strict=False)
    ]
    batches = [margins(cases[:2], lines[:2], Rule().only), margins(cases[2:], lines[2:], Rule().only)]
    with result_folder(tmp_path / "out", "supervise", config={}, inputs={}) as result:
        found = write_supervised(batches, Rule(), result)
    assert (found.counts.num_in, found.counts.num_used) == (5, 2)
    assert found.counts.dropped == {"disagrees": 1, "tie": 1, "unscored": 1}
    assert found.counts.noted == {
        "cases": 4,
        "cases without a supervised judgment": 1,
        "cases left without a judgment": 1,
        "judgments not supervised": 1,
        "pairs listed before, without a kept verdict": 1,
        "unscored responses": 1,
    }
    assert (found.num_strict, found.num_strict_kept, found.num_prompts, found.num_prompts_kept) == (4, 2, 3, 2)
    assert len(list(read_cases(tmp_path / "out" / "cases.jsonl"))) == 4
    rows = read_lines(tmp_path / "out" / "manifest.jsonl")
    assert len(rows) == found.counts.num_in - found.counts.num_used
    assert (rows[-1]["rule"], rows[-1]["margin"], rows[-1]["left_score"]) == ("unscored", None, None)
    with result_folder(tmp_path / "cut", "supervise", config={}, inputs={}) as result:
        cut = write_supervised(batches, Rule(policy="cycles"), result)
    assert cut.counts.noted["strict judgments with an unscored end"] == 1
    # a=b merges both, so that a>b and b>a are inside a tie; nothing else is in a cycle.
    assert cut.counts.dropped == {"inside a tie": 2}
