import msgspec
import pytest

from steelyard.core.errors import ConfigError, EvidenceError, FileError, KindError
from steelyard.core.types import Scores
from steelyard.io.run_folder import result_folder
from steelyard.plugins.reward_models import build_model, choose_kind, choose_model, scored, write_scores
from strategies import case


def test_a_word_is_a_kind_and_its_defaults_are_recorded():
    choice = choose_model("random")
    assert (choice.kind, choice.name, choice.settings, choice.files) == ("random", "random", {"seed": 0}, {})
    assert choose_model("random", {"seed": 3}).settings == {"seed": 3}


def test_what_names_a_file_is_an_input_and_no_setting(tmp_path):
    (tmp_path / "train.jsonl").write_text("{}")
    choice = choose_model("ngram", {"train": str(tmp_path / "train.jsonl")})
    assert "train" not in choice.settings
    assert choice.inputs() == {"model.train": tmp_path / "train.jsonl"}
    assert build_model(choice).path == tmp_path / "train.jsonl"
    assert choose_model("ngram").files == {}


@pytest.mark.parametrize("name", ["absent/", "some/where/absent"])
def test_a_path_is_a_folder_that_must_be_there(name):
    with pytest.raises(FileError, match="no such file or folder"):
        choose_model(name)


@pytest.mark.parametrize(
    ("name", "told"),
    [
        ("RLHFlow/ArmoRM-Llama3-8B-v0.1", "model=armorm, model.path=FOLDER"),
        ("weqweasdas/RM-Mistral-7B", "model=FOLDER"),
        ("allenai/tulu-2-dpo-13b", "model=implicit, .*model.reference=FOLDER_OF_allenai/tulu-2-13b"),
        ("Qwen/Qwen2.5-7B-Instruct", "ask it as a judge"),
    ],
)
def test_a_published_name_is_told_what_scores_it(name, told):
    with pytest.raises(FileError, match=f"(?s)a name on the hub, and no folder here.*download it; then {told}"):
        choose_model(name)


def test_a_panel_is_made_of_models_that_are_chosen_alike(tmp_path):
    (tmp_path / "train.jsonl").write_text("{}")
    members = ["longer", {"model": "ngram", "settings": {"train": str(tmp_path / "train.jsonl")}, "mean": 1.5}]
    choice = choose_model("panel", {"members": members})
    assert choice.inputs() == {"model.members.1.train": tmp_path / "train.jsonl"}
    assert str(tmp_path) not in str(choice.settings)
    assert choice.settings["members"][0] == {"model": "longer", "settings": {}}
    assert choice.settings["members"][1]["mean"] == 1.5
    assert [
        member.protocol()["model"]
        for member in build_model(choose_model("panel", {"members": ["longer", "markup"]})).members
    ] == ["longer", "markup"]
    with pytest.raises(KindError, match="did you mean 'longer'"):
        choose_model("panel", {"members": ["longr", "markup"]})


def test_a_misspelt_kind_or_setting_is_named():
    with pytest.raises(KindError, match="did you mean 'longer'"):
        choose_model("longr")
    with pytest.raises(ConfigError, match="did you mean 'seed'"):
        choose_model("random", {"sed": 1})
    with pytest.raises(FileError, match="absent"):
        choose_model("ngram", {"train": "absent.jsonl"})


class Endless:
    """A model whose scores are not finite."""

    def score(self, cases):
        for one in cases:
            yield Scores(prompt=one.prompt.id, scores={response.id: float("inf") for response in one.responses})

    def protocol(self):
        return {}


def test_scores_are_checked_on_their_way():
    with pytest.raises(EvidenceError, match="model 'endless' gives inf"):
        list(scored(Endless(), [case()], name="endless", quietly=True))


def test_scores_are_written_in_order_and_counted(tmp_path):
    cases = [case(f"p{number}", text="q") for number in range(300)]
    with result_folder(tmp_path / "out", "score", config={}, inputs={}) as result:
        lines = []
        path = write_scores(build_model(choose_model("longer")), cases, result, name="longer", count=lines.append)
    assert path == tmp_path / "out" / "scores.jsonl"
    assert (
        msgspec.json.decode(b"[" + path.read_bytes().rstrip().replace(b"\n", b",") + b"]", type=list[Scores]) == lines
    )
    assert [line.prompt for line in lines] == [one.prompt.id for one in cases]


def test_a_score_that_is_not_finite_leaves_no_file(tmp_path):
    with (
        pytest.raises(EvidenceError, match="model 'endless' gives inf"),
        result_folder(tmp_path / "out", "score", config={}, inputs={}) as result,
    ):
        write_scores(Endless(), [case()], result, name="endless")
    assert not (tmp_path / "out").exists()


def test_a_kind_is_a_kind_whatever_folder_of_its_name_lies_about(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    (tmp_path / "longer").mkdir()
    (tmp_path / "longer" / "config.json").write_text("{}")
    assert choose_model("longer").kind == "classifier"
    assert choose_kind("longer").kind == "longer"


def test_an_output_named_after_a_kind_does_not_hide_the_kind(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    (tmp_path / "longer").mkdir()
    (tmp_path / "longer" / "run.json").write_text("{}")
    assert choose_model("longer").kind == "longer"
    (tmp_path / "longer" / "config.json").write_text("{}")
    assert choose_model("longer").kind == "classifier"
    (tmp_path / "my-model").mkdir()
    assert choose_model("my-model").kind == "classifier", "no kind: the folder is what is meant, and is refused as one"
