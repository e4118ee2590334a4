import msgspec
import pytest

from steelyard.core.self_tests import ComparesAnswers, SelfTest, SelfTested
from steelyard.plugins.models import first, longer


def test_a_remark_on_a_passed_test_is_a_doubt_and_a_failure_is_none():
    assert SelfTest(name="head", state="passed", found="looks drawn").is_doubtful
    assert not SelfTest(name="head", state="passed").is_doubtful
    assert not SelfTest(name="head", state="failed", found="zero").is_doubtful
    assert not SelfTest(name="head", state="not applicable", found="none").is_doubtful


def test_a_state_that_does_not_exist_is_refused():
    with pytest.raises(msgspec.ValidationError):
        msgspec.convert({"name": "head", "state": "fine"}, SelfTest)


def test_only_models_that_say_so_show_tokens_or_compare_answers():
    assert isinstance(first.build(first.Config()), ComparesAnswers)
    assert not isinstance(longer.build(longer.Config()), ComparesAnswers)
    assert not isinstance(longer.build(longer.Config()), SelfTested)
