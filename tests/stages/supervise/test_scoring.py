import pytest

from steelyard.core.errors import EvidenceError
from steelyard.core.plugins import build
from steelyard.core.types import Scores
from steelyard.io.run_folder import result_folder
from steelyard.ranking.judgment_table import Only
from steelyard.stages.supervise.scoring import read_batches_scored, write_scores
from supervision_files import judged, read_lines, write


def test_scores_are_written_in_order_and_read_in_batches(tmp_path):
    many = [judged(f"p{index}", texts=("a" * (index % 7 + 1), "")) for index in range(600)]
    cases = write(tmp_path / "c.jsonl", many)
    with result_folder(tmp_path / "out", "supervise", config={}, inputs={"cases": cases}) as result:
        written = write_scores(build("models", "longer"), cases, result, name="longer", part="s")
    assert written == tmp_path / "out" / "s.jsonl"
    assert [line["prompt"] for line in read_lines(written)] == [one.prompt.id for one in many]
    batches = list(read_batches_scored(cases, written, Only(kind=("llm",))))
    assert [len(batch.cases) for batch in batches] == [256, 256, 88]
    margins = [margin for batch in batches for margin in batch.margin.tolist()]
    assert margins == [index % 7 + 1 for index in range(600)]


class Wild:
    """A model with a score that is none."""

    def score(self, cases):
        for case in cases:
            yield Scores(prompt=case.prompt.id, scores={one.id: float("nan") for one in case.responses})

    def protocol(self):
        return {}


def test_a_score_that_is_no_number_leaves_no_file(tmp_path):
    cases = write(tmp_path / "c.jsonl", [judged("p")])
    with (
        pytest.raises(EvidenceError, match=r"wild.* gives nan for response 'a'"),
        result_folder(tmp_path / "out", "supervise", config={}, inputs={"cases": cases}) as result,
    ):
        write_scores(Wild(), cases, result, name="wild")
    assert not (tmp_path / "out").exists()
