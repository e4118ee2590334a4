import time

import pytest
from huggingface_hub import constants

import tiny
from steelyard.core.errors import FileError, ModelError
from steelyard.networks.pretrained import hub_folder, is_hub_name
from steelyard.plugins.reward_models import choose_model


@pytest.fixture
def nowhere(tmp_path, monkeypatch):
    """A hub that nobody serves, and an empty cache."""
    for name in (
        "HTTP_PROXY",
        "HTTPS_PROXY",
        "ALL_PROXY",
        "http_proxy",
        "https_proxy",
        "all_proxy",
        "NO_PROXY",
        "no_proxy",
    ):
        monkeypatch.delenv(name, raising=False)
    monkeypatch.setattr(constants, "ENDPOINT", "http://127.0.0.1:9")
    monkeypatch.setattr(constants, "HF_HUB_CACHE", str(tmp_path / "cache"))
    return tmp_path / "cache"


@pytest.mark.parametrize("name", ["owner/name", "Skywork/Skywork-Reward-Gemma-2-27B-v0.2", "a/b_c.d-e"])
def test_a_name_of_owner_and_model_is_one_of_the_hub(name):
    assert is_hub_name(name)


@pytest.mark.parametrize(
    "name", ["name", "a/b/c", "/a/b", "./a", "../b", "~/b", "a/", "a/b/", "a//b", "-a/b", "a b/c", "模型/甲"]
)
def test_a_path_is_none(name):
    assert not is_hub_name(name)


def test_a_folder_that_is_there_is_a_folder(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    (tmp_path / "owner" / "name").mkdir(parents=True)
    assert not is_hub_name("owner/name")


def test_without_a_network_it_is_said_within_seconds(nowhere):
    started = time.monotonic()
    with pytest.raises(ModelError, match=r"owner/name: there is no such folder here.*127\.0\.0\.1:9 does not answer"):
        hub_folder("owner/name")
    assert time.monotonic() - started < 10
    with pytest.raises(ModelError, match="no such folder here"):
        choose_model("owner/name")
    with pytest.raises(FileError, match=r"(?s)a name on the hub, and no folder here.*does not answer.*download it"):
        choose_model("weqweasdas/RM-Mistral-7B")


def test_what_was_fetched_before_is_scored_without_a_network(nowhere):
    repository = nowhere / "models--owner--name"
    revision = "0" * 40
    (repository / "refs").mkdir(parents=True)
    (repository / "refs" / "main").write_text(revision, encoding="utf-8")
    tiny.save_classifier(repository / "snapshots" / revision)
    choice = choose_model("owner/name")
    assert (choice.kind, choice.name) == ("classifier", "name")
    assert choice.files["path"] == repository / "snapshots" / revision
    implicit = choose_model("implicit", {"path": "owner/name", "reference": "owner/name"})
    assert implicit.files["reference"] == choice.files["path"]
