import json

import pytest

from steelyard.core.errors import FileError, ModelError
from steelyard.networks.conversation import Rendering
from steelyard.networks.settings import Manifest, protocol_of, read_manifest, write_manifest

RENDERING = Rendering(template="{{ messages }} 杆秤", max_length=99, over_length="left")
MANIFEST = Manifest(
    rendering=RENDERING,
    template_hash=RENDERING.template_hash,
    dtype="float32",
    base_model="b",
    data_hash="d",
    versions={"torch": "2"},
)


def test_a_manifest_comes_back_as_it_went(tmp_path):
    write_manifest(tmp_path, MANIFEST)
    assert read_manifest(tmp_path) == MANIFEST
    assert read_manifest(tmp_path / "elsewhere") is None


def test_a_broken_or_edited_manifest_is_refused(tmp_path):
    write_manifest(tmp_path, MANIFEST)
    path = tmp_path / "steelyard.json"
    record = json.loads(path.read_text(encoding="utf-8"))
    record["rendering"]["template"] = "another"
    path.write_text(json.dumps(record), encoding="utf-8")
    with pytest.raises(ModelError, match="not the one the model was trained with"):
        read_manifest(tmp_path)
    path.write_text("{")
    with pytest.raises(FileError, match="not a manifest"):
        read_manifest(tmp_path)


def test_a_number_type_that_no_model_is_loaded_in_is_refused_by_its_manifest(tmp_path):
    write_manifest(tmp_path, MANIFEST)
    path = tmp_path / "steelyard.json"
    for number_type in ("float8", "nn", "", 3):
        record = json.loads(path.read_text(encoding="utf-8")) | {"dtype": number_type}
        path.write_text(json.dumps(record), encoding="utf-8")
        with pytest.raises(FileError, match=r"not a manifest.*dtype"):
            read_manifest(tmp_path)


def test_the_protocol_names_what_decides_a_score():
    protocol = protocol_of(RENDERING, dtype="float32", model="m")
    assert protocol["template_hash"] == RENDERING.template_hash
    assert (protocol["max_length"], protocol["over_length"], protocol["strip"]) == (99, "left", True)


def test_the_rewards_of_the_reference_set_and_what_was_done_to_them_come_back(tmp_path):
    import msgspec

    from steelyard.networks.settings import RewardReference, RewardScale

    reference = RewardReference(
        name="参考.jsonl", data_hash="h", num_prompts=1, num_rewards=2, mean=0.5, spread=1.0, spread_within=0.5
    )
    told = msgspec.structs.replace(MANIFEST, reference=reference, calibration=RewardScale(scale=2.0, shift=-0.5))
    write_manifest(tmp_path, told)
    assert read_manifest(tmp_path) == told
    # A model of an earlier version tells nothing of its rewards, and is a model all the same.
    write_manifest(tmp_path, MANIFEST)
    assert read_manifest(tmp_path).reference is None
