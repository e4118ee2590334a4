import pytest

import tiny_families
from steelyard.core.errors import ModelError
from steelyard.core.plugins import build
from steelyard.core.types import Case, Response
from strategies import prompt

CASES = [
    Case(
        prompt=prompt("p", "question"),
        responses=tuple(Response(id=text, text=text) for text in ("你好", "x y", "z" * 40)),
    )
]


@pytest.mark.parametrize("is_weighted", [True, False])
def test_five_means_are_weighted_by_the_layer_or_by_the_card(tmp_path, is_weighted):
    folder = tiny_families.save_urm(tmp_path, is_weighted=is_weighted)
    weights = {name: value.double().numpy() for name, value in tiny_families.stored(folder).items()}
    model = build("models", "urm", {"path": folder})
    (line,) = model.score(CASES)
    for response in CASES[0].responses:
        last = tiny_families.hidden_states(folder, tiny_families.chat_ids(folder, CASES[0], response))[-1]
        outputs = weights["score.weight"] @ last
        by = [0.3, 0.74, 0.46, 0.47, -0.33]
        if is_weighted:
            by = weights["weights.weight"] @ last + weights["weights.bias"]
        expected = sum(by[index] * outputs[2 * index] for index in range(5))
        assert line.scores[response.id] == pytest.approx(expected, abs=1e-4)
    assert model.protocol()["weights"] == ("learned" if is_weighted else [0.3, 0.74, 0.46, 0.47, -0.33])


def test_a_gate_of_another_shape_is_refused_and_not_guessed_at(tmp_path):
    from safetensors.torch import save_file

    folder = tiny_families.save_urm(tmp_path)
    weights = tiny_families.stored(folder)
    weights["weights.0.weight"] = weights.pop("weights.weight")
    save_file(weights, tmp_path / "model.safetensors")
    with pytest.raises(ModelError, match=r"is not of this family: it lacks weights\.weight"):
        build("models", "urm", {"path": folder})
