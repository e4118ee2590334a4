import json

from steelyard.cli.shown import counted, show
from steelyard.core.types import Counts, Run

RUN = Run(
    stage="s",
    config={},
    counts=Counts(num_in=1200, num_used=1199, dropped={"rule": 1}, noted={"given": 2, "nothing": 0}),
)


def test_counts_in_one_line():
    assert counted(RUN) == "1,200 in, 1,199 used; dropped: rule 1; noted: given 2"


def test_lines_for_a_person_or_json_for_a_machine(capsys):
    show(RUN, ["杆秤"], as_json=False)
    assert capsys.readouterr().out.startswith("杆秤\n1,200 in")
    show(RUN, ["x"], as_json=True)
    assert json.loads(capsys.readouterr().out)["counts"]["num_used"] == 1199
