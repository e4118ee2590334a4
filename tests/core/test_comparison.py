import msgspec
import pytest

from steelyard.core.comparison import OUTCOMES, VERDICTS, Alternative, PairVerdict, Reply


@pytest.mark.parametrize("outcome", OUTCOMES)
def test_a_verdict_is_an_outcome_or_none(outcome):
    verdict = PairVerdict(left="x", right="y", outcome=outcome).verdict
    assert verdict == (outcome if outcome in VERDICTS else "none")


def test_there_are_seven_outcomes():
    assert OUTCOMES == ("left", "right", "tie", "unparsed", "refused", "cut off", "failed")
    assert OUTCOMES[:3] == VERDICTS


def test_replies_survive_writing():
    reply = Reply(request="r", text="שלום 中文", first_token=(Alternative(token="Ａ", logprob=-1.5),))
    assert msgspec.json.decode(msgspec.json.encode(reply), type=Reply) == reply
