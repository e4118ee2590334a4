"""`judge` through faults and kills: no reply lost, none asked for twice, every verdict that of a run without them."""

import pytest

from fault_runs import judge_through_faults


@pytest.mark.slow
def test_faults_and_kills_change_no_verdict(tmp_path):
    outcome = judge_through_faults(tmp_path, num_cases=750, share=0.3, num_kills=5, seed=3)
    assert outcome.num_questions == 1500
    assert outcome.num_kills == 5
    # The cases and the counts of tokens are those of the run without faults, byte for byte.
    assert outcome.num_faults >= 0.25 * 1500
    assert outcome.left == outcome.expected
    # What was in the ledger at a kill was not asked again, and everything else was.
    assert outcome.num_asked_after == [1500 - number for number in outcome.num_stored]
    assert outcome.num_stored == sorted(outcome.num_stored)
    assert outcome.num_stored[-1] > 0
