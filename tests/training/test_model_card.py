import json
import re
from collections import Counter

import pytest
from hypothesis import given
from hypothesis import strategies as st

from steelyard.networks.conversation import Rendering
from steelyard.networks.settings import Manifest
from steelyard.ranking.pairs import IndexedPair
from steelyard.training.config import Config, GroupAccuracy, HeldOutAccuracy
from steelyard.training.examples import Example, Examples, LengthCounter
from steelyard.training.export import CardInputs, escaped, model_card

GROUP = GroupAccuracy(accuracy=0.75, exact_match=0.5, num_pairs=4, num_prompts=2)
RENDERING = Rendering(template="t")
MANIFEST = Manifest(rendering=RENDERING, template_hash="h", dtype="float32", base_model="b", data_hash="d", versions={})


def examples(languages, rule="a rule"):
    made = tuple(Example(((1,), (2,)), (IndexedPair(0, 1),), language=language) for language in languages)
    length = LengthCounter(9, "unscored")
    for language in languages:
        length.add({0: 1, 1: 1}, made[0].pairs, language=language)
    return Examples(made, len(made) + 1, Counter({rule: 1}), Counter(), length)


def held_out(category):
    return HeldOutAccuracy(
        accuracy=0.75, exact_match=0.5, num_pairs=4, num_prompts=2, by_category={category: GROUP}, by_language={}
    )


PLAIN = CardInputs(
    model="Qwen/Qwen2.5-0.5B",
    file_name="train.jsonl",
    examples=examples(("zh", "en", "heb_Hebr")),
    config=Config(),
    manifest=MANIFEST,
    held_out=held_out("数学"),
)
hostile = st.text(st.characters(codec="utf-8"), max_size=40) | st.sampled_from(
    [
        "a|b\n| --- |",
        "---\nlicense: mit\n---",
        "</table><script>x</script>",
        "`code` ```",
        "# head",
        "[x](y)",
        "\u2028-",
    ]
)


def front(text):
    """The YAML above, whose values are JSON: what a reader finds between the first two lines of dashes."""
    lines = text.split("\n")
    assert lines[0] == "---"
    return lines[1 : lines.index("---", 1)]


def test_the_card_names_data_results_protocol_and_leaves_the_licence_open():
    text = model_card(PLAIN)
    for part in (
        "| file | train\\.jsonl |",
        "| 数学 | 0\\.75 | 0\\.5 | 4 | 2 |",
        "vllm serve",
        "sglang",
        "Not named yet",
    ):
        assert part in text
    keys = dict(line.split(": ", 1) for line in front(text) if not line.startswith("#"))
    assert json.loads(keys["base_model"]) == "Qwen/Qwen2.5-0.5B"
    assert json.loads(keys["language"]) == ["en", "zh"]
    assert "license" not in keys
    assert "None: no cases were held out" in model_card(PLAIN._replace(held_out=None))


@given(hostile)
def test_no_text_of_a_user_breaks_yaml_headings_tables_or_code(text):
    plain = model_card(PLAIN)
    card = PLAIN._replace(
        model=f"x/{text}".replace("\0", ""),
        file_name=text,
        examples=examples((text, "en", "zh"), rule=text),
        held_out=held_out(text),
    )
    found = model_card(card)
    lines = [line for line in front(found) if not line.startswith("#")]
    assert {line.split(":")[0] for line in lines} <= {"library_name", "pipeline_tag", "base_model", "language", "tags"}
    assert all(json.loads(line.split(": ", 1)[1]) for line in lines)
    body = found.split("\n---\n", 1)[1]
    same = plain.split("\n---\n", 1)[1]
    assert len(body.split("\n")) == len(same.split("\n"))
    assert body.count("```") == same.count("```")
    assert "<" not in body
    starts = [line[:2] for line in body.split("\n") if line.startswith("#")]
    assert starts == [line[:2] for line in same.split("\n") if line.startswith("#")]
    for ours, theirs in zip(body.split("\n"), same.split("\n"), strict=True):
        assert len(re.findall(r"(?<!\\)\|", ours)) == len(re.findall(r"(?<!\\)\|", theirs))


@pytest.mark.parametrize(
    ("value", "told"), [("a_b", "a\\_b"), (None, "null"), (0.5, "0\\.5"), ("x\ty\n", "x y"), ("<b>&", "&lt;b\\>&amp;")]
)
def test_values_are_plain_text_on_one_line(value, told):
    assert escaped(value) == told
