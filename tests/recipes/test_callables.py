import pytest

from steelyard.core.errors import ConfigError
from steelyard.recipes.callables import Parameter, stage_call, stage_verbs


def test_every_stage_that_leaves_a_record_can_be_called():
    found = stage_verbs()
    assert {"simulate", "merge", "resolve", "split", "train", "score", "evaluate", "report"} <= set(found)
    assert "doctor" not in found


def test_inputs_are_told_from_the_signature():
    call = stage_call("evaluate", where="f")
    assert call.parameters == {
        "benches": Parameter("benches", "files", is_required=True),
        "model": Parameter("model", "name", is_required=False),
        "scores": Parameter("scores", "file", is_required=False),
        "train_cases": Parameter("train_cases", "file", is_required=False),
    }
    assert stage_call("train", where="f").parameters["model"] == Parameter("model", "name", is_required=True)


@pytest.mark.parametrize("verb", ["resolv", "doctor", "os", ""])
def test_another_verb_is_refused_with_the_nearest(verb):
    with pytest.raises(ConfigError, match=rf"^f: there is no stage '{verb}'\n  allowed: .*resolve"):
        stage_call(verb, where="f")
