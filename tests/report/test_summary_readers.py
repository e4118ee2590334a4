import msgspec
import pytest

from steelyard.report.summary_readers import Training, model_name


def test_summaries_may_lack_keys_and_have_new_ones():
    assert msgspec.convert({"held_out": None, "new": 1}, Training).held_out is None


def test_a_wrong_type_is_an_error():
    with pytest.raises(msgspec.ValidationError):
        msgspec.convert({"num_steps": "many"}, Training)


@pytest.mark.parametrize(
    ("model", "name"),
    [
        ("length", "length"),
        ("runs/模型/", "模型"),
        (r"C:\models\rm", "rm"),
        ({"kind": "length"}, "length"),
        ({"path": "a/b", "kind": "classifier"}, "b"),
        ({}, None),
        ("", None),
        ("/", None),
        (None, None),
        (3, None),
    ],
)
def test_model_name(model, name):
    assert model_name(model) == name
