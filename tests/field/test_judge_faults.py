"""20,000 requests, three in ten of which meet a fault, and 50 kills: the result is that of a run without either."""

import json
import sys
import time

import pytest

from fault_runs import judge_through_faults

pytestmark = [pytest.mark.field, pytest.mark.filterwarnings("ignore")]


def test_20000_requests_through_faults_and_50_kills(tmp_path):
    started = time.monotonic()
    outcome = judge_through_faults(tmp_path, num_cases=10_000, share=0.3, num_kills=50, seed=7)
    assert (outcome.num_questions, outcome.num_kills) == (20_000, 50)
    assert outcome.num_faults >= 5000
    assert outcome.left == outcome.expected
    assert outcome.num_asked_after == [20_000 - number for number in outcome.num_stored]
    measured = {"requests": outcome.num_requests, "faults": outcome.num_faults, "runs": outcome.num_runs}
    measured |= {"seconds": round(time.monotonic() - started)}
    sys.stderr.write(json.dumps(measured) + "\n")
