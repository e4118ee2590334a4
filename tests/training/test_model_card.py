import json
import re
from collections import Counter

import pytest
import yaml
from huggingface_hub import ModelCard, ModelCardData, metadata_load
from hypothesis import given
from hypothesis import strategies as st

import tiny
from steelyard.io.rows import write_rows
from steelyard.networks.conversation import Rendering
from steelyard.networks.settings import Manifest
from steelyard.ranking.pairs import IndexedPair
from steelyard.stages.convert import Config as ConvertConfig
from steelyard.stages.convert import convert
from steelyard.stages.resolve import resolve
from steelyard.stages.train import train
from steelyard.training.config import Config, GroupAccuracy, HeldOutAccuracy
from steelyard.training.examples import Example, Examples, LengthCounter
from steelyard.training.model_card import CardInputs, escaped, model_card

GROUP = GroupAccuracy(accuracy=0.75, exact_match=0.5, num_pairs=4, num_prompts=2, interval=(0.25, 0.96875))
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
        **{name: getattr(GROUP, name) for name in GROUP.__struct_fields__},
        by_category={category: GROUP},
        by_language={},
    )


PLAIN = CardInputs(
    model="Qwen/Qwen2.5-0.5B",
    file_name="train.jsonl",
    examples=examples(("zh", "en", "heb_Hebr")),
    config=Config(),
    manifest=MANIFEST,
    held_out=held_out("数学"),
    held_out_file="held.jsonl",
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
        "| 数学 | 0\\.75 | 0\\.2500 to 0\\.9688 | 0\\.5 | 4 | 2 |",
        "vllm serve",
        "sglang",
        "Not named yet",
    ):
        assert part in text
    keys = dict(line.split(": ", 1) for line in front(text) if not line.startswith("#"))
    assert json.loads(keys["base_model"]) == "Qwen/Qwen2.5-0.5B"
    assert json.loads(keys["language"]) == ["en", "heb", "zh"]
    assert "license" not in keys
    assert "None: no cases were held out" in model_card(PLAIN._replace(held_out=None))


@given(hostile)
def test_no_text_of_a_user_breaks_yaml_headings_tables_or_code(text):
    plain = model_card(PLAIN)
    card = PLAIN._replace(
        model=f"x/{text}".replace("\0", ""),
        file_name=text,
        held_out_file=text,
        examples=examples((text, "en", "zh"), rule=text),
        held_out=held_out(text),
    )
    found = model_card(card)
    lines = [line for line in front(found) if not line.startswith("#")]
    assert {line.split(":")[0] for line in lines} <= {
        "library_name", "pipeline_tag", "base_model", "base_model_relation", "language", "tags", "model-index",
    }  # fmt: skip
    values = {line.split(": ", 1)[0]: json.loads(line.split(": ", 1)[1]) for line in lines}
    assert all(values.values())
    assert yaml.safe_load("\n".join(lines)) == values
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


def as_the_hub_reads(card, folder):
    """The metadata as the Hub's own library reads it from a README."""
    (folder / "README.md").write_text(model_card(card), encoding="utf-8")
    return ModelCardData(**metadata_load(folder / "README.md"))


def test_the_hub_s_library_reads_base_model_languages_and_the_held_out_accuracy(tmp_path):
    data = as_the_hub_reads(PLAIN, tmp_path)
    assert (data.library_name, data.pipeline_tag) == ("transformers", "text-classification")
    assert (data.base_model, data["base_model_relation"]) == ("Qwen/Qwen2.5-0.5B", "finetune")
    assert (data.language, data.tags) == (["en", "heb", "zh"], ["reward-model", "steelyard"])
    assert (data.license, data.datasets) == (None, None)
    (result,) = data.eval_results
    assert (result.task_type, result.dataset_type) == ("text-classification", "json")
    assert (result.dataset_name, result.metric_type, result.metric_value) == ("held out: held.jsonl", "accuracy", 0.75)
    assert result.metric_name == "accuracy (95% interval 0.2500 to 0.9688, n = 4 pairs of 2 prompts)"
    assert data.to_dict()["model-index"][0]["name"] == "A reward model from Qwen2.5-0.5B"


def test_a_result_that_selected_the_weights_says_so(tmp_path):
    (result,) = as_the_hub_reads(PLAIN._replace(config=Config(keep="best")), tmp_path).eval_results
    assert result.metric_name.endswith("prompts; training was stopped or its weights selected by it)")
    (result,) = as_the_hub_reads(PLAIN._replace(held_out_file="h.parquet"), tmp_path).eval_results
    assert result.dataset_type == "parquet"


def test_without_held_out_cases_there_is_no_result(tmp_path):
    data = as_the_hub_reads(PLAIN._replace(held_out=None), tmp_path)
    assert data.eval_results is None
    assert "model-index" not in data


@pytest.mark.parametrize(
    ("folder", "name"),
    [
        ("models/my-base", "my-base"),
        ("hub/models--Qwen--Qwen2.5-0.5B/snapshots/060db64", "Qwen/Qwen2.5-0.5B"),
        ("models/模型 one", None),
    ],
)
def test_a_backbone_in_a_folder_is_named_without_the_folder_s_place(tmp_path, monkeypatch, folder, name):
    """The Hub refuses a card whose ``base_model`` cannot be the name of a model."""
    (tmp_path / folder).mkdir(parents=True)
    monkeypatch.chdir(tmp_path / folder)
    for path in (str(tmp_path / folder), "."):
        card = PLAIN._replace(model=path, config=Config(adapter="lora", save_adapter="adapter"))
        assert str(tmp_path) not in model_card(card)
        data = as_the_hub_reads(card, tmp_path)
        assert data.base_model == name
        assert data.get("base_model_relation") == (name and "adapter")


def test_a_policy_is_a_text_generator(tmp_path):
    data = as_the_hub_reads(PLAIN._replace(config=Config(kind="implicit")), tmp_path)
    assert data.pipeline_tag == data.eval_results[0].task_type == "text-generation"


def test_data_sets_of_the_hub_are_named_where_they_are_known(tmp_path):
    data = as_the_hub_reads(PLAIN._replace(datasets=("allenai/reward-bench", "imdb")), tmp_path)
    assert data.datasets == ["allenai/reward-bench", "imdb"]
    assert "| data sets of the Hub | allenai/reward" in (tmp_path / "README.md").read_text("utf-8")


def test_a_training_names_the_data_set_that_was_named_when_its_data_were_converted(tmp_path):
    write_rows(tmp_path / "rows.jsonl", [{"prompt": f"q {n}", "chosen": "yes", "rejected": "no"} for n in range(4)])
    convert(tmp_path / "rows.jsonl", tmp_path / "cases.jsonl", ConvertConfig(dataset_name="owner/name", language="en"))
    resolve(tmp_path / "cases.jsonl", tmp_path / "resolved")
    cases, base = tmp_path / "resolved" / "cases.jsonl", tiny.save_base(tmp_path / "base")
    run = train(cases, tmp_path / "model", Config(epochs=1, batch_size=2), model=str(base))
    assert run.datasets == ("owner/name",)
    assert ModelCardData(**metadata_load(tmp_path / "model" / "README.md")).datasets == ["owner/name"]
    card = ModelCard.load(tmp_path / "model" / "README.md", ignore_metadata_errors=False)
    assert card.data.datasets == ["owner/name"]
    # A copy of the cases without the record of a run is of unknown origin.
    (tmp_path / "copy.jsonl").write_bytes(cases.read_bytes())
    other = train(tmp_path / "copy.jsonl", tmp_path / "other", Config(epochs=1, batch_size=2), model=str(base))
    assert other.datasets == ()
    assert ModelCardData(**metadata_load(tmp_path / "other" / "README.md")).datasets is None
