import msgspec
import pytest

from steelyard.core.plugins import build
from steelyard.core.protocols import ComparesAnswers, SelfTest, SelfTested


def test_a_remark_on_a_passed_test_is_a_doubt_and_a_failure_is_none():
    assert SelfTest(name="head", state="passed", remark="looks drawn").is_doubtful
    assert not SelfTest(name="head", state="passed").is_doubtful
    assert not SelfTest(name="head", state="failed", remark="zero").is_doubtful
    assert not SelfTest(name="head", state="not applicable", remark="none").is_doubtful


def test_a_state_that_does_not_exist_is_refused():
    with pytest.raises(msgspec.ValidationError):
        msgspec.convert({"name": "head", "state": "fine"}, SelfTest)


def test_only_models_that_say_so_show_tokens_or_compare_answers():
    first, longer = build("models", "first"), build("models", "longer")
    assert isinstance(first, ComparesAnswers)
    assert (first.compares_answers, longer.compares_answers) == (True, False)
    assert not isinstance(longer, SelfTested)
