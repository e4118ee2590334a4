import numpy as np
import pytest

import tiny_families
from steelyard.core.plugins import build
from steelyard.core.types import Case, Response
from strategies import prompt

CASE = Case(
    prompt=prompt("p", "why?"), responses=tuple(Response(id=text, text=text) for text in ("因为。", "no", "z" * 40))
)


@pytest.mark.parametrize("kind", ["mlp", "linear"])
def test_the_value_head_is_read_at_the_last_token(tmp_path, kind):
    folder = tiny_families.save_grm(tmp_path, vhead_layer_type=kind)
    weights = {name: value.double().numpy() for name, value in tiny_families.stored(folder).items()}
    (line,) = build("models", "grm", {"path": folder}).score([CASE])
    for response in CASE.responses:
        value = tiny_families.hidden_states(folder, tiny_families.chat_ids(folder, CASE, response))[-1]
        if kind == "mlp":
            value = np.maximum(weights["v_head.summary.0.weight"] @ value + weights["v_head.summary.0.bias"], 0)
        last = "v_head.summary.2" if kind == "mlp" else "v_head.summary"
        expected = (weights[f"{last}.weight"] @ value + weights[f"{last}.bias"])[0]
        assert line.scores[response.id] == pytest.approx(expected, abs=1e-4)
