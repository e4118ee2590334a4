import pytest

from chat_server import record
from steelyard.core.errors import ConfigError, FileError, KindError
from steelyard.judging.panel import PanelMember, build_panel, choose_panel


def chat(tmp_path, name):
    return record(tmp_path / f"{name}.jsonl", {"text": "[[A]]"}) | {"name": name}


def members(tmp_path, *names):
    return [PanelMember(chat=chat(tmp_path, name), judge={"style": "qwen"}) for name in names]


def test_files_are_inputs_and_settings_are_whole(tmp_path):
    choice = choose_panel("pairs", chat=chat(tmp_path, "m"), judge={"style": "qwen"})
    assert choice.inputs() == {"chat.0.path": tmp_path / "m.jsonl"}
    (own,) = choice.settings()["members"]
    assert own["chat"] == {"kind": "recorded", "name": "m"}
    # Null is the style's own: `protocol` has what it stands for.
    assert (own["judge"]["style"], own["judge"]["orders"], own["judge"]["form"]) == ("qwen", None, None)


@pytest.mark.parametrize(
    ("design", "kind"), [("pairs", "pairwise"), ("triples", "ranking"), ("best", "best"), ("ratings", "rating")]
)
def test_a_design_has_its_judge(tmp_path, design, kind):
    jury = build_panel(choose_panel(design, chat=chat(tmp_path, "m"), judge={}))
    assert jury.name == "m"
    assert jury.protocol()["members"]["m"]["judge"]["judge"] == kind


def test_a_panel_signs_with_its_name(tmp_path):
    jury = build_panel(choose_panel("pairs", chat={}, judge={}, members=members(tmp_path, "a", "b", "c")))
    assert (jury.name, [member.name for member in jury.members]) == ("panel", ["a", "b", "c"])


def test_a_panel_that_cannot_vote_is_refused(tmp_path):
    two = members(tmp_path, "a", "b")
    with pytest.raises(ConfigError, match="an even number"):
        choose_panel("pairs", chat={}, judge={}, members=two)
    assert len(choose_panel("pairs", chat={}, judge={}, members=two, allow_even=True).members) == 2
    with pytest.raises(ConfigError, match="cannot vote on ratings"):
        choose_panel("ratings", chat={}, judge={}, members=members(tmp_path, "a"))
    with pytest.raises(ConfigError, match="beside them"):
        choose_panel("pairs", chat={}, judge={"style": "qwen"}, members=members(tmp_path, "a"))


def test_two_judges_of_one_name_cannot_be_told_apart(tmp_path):
    choice = choose_panel("pairs", chat={}, judge={}, members=members(tmp_path, "a", "b", "a"))
    with pytest.raises(ConfigError, match="two judges of one name"):
        build_panel(choice)
    with pytest.raises(ConfigError, match="two judges of one name"):
        build_panel(choose_panel("pairs", chat={}, judge={}, members=members(tmp_path, "a", "b", "panel")))


def test_what_does_not_exist_is_told(tmp_path):
    with pytest.raises(KindError, match="openai"):
        choose_panel("pairs", chat={"kind": "openay_compatible"}, judge={})
    with pytest.raises(FileError, match="absent"):
        choose_panel("pairs", chat={"kind": "recorded", "path": str(tmp_path / "absent")}, judge={})
    with pytest.raises(ConfigError, match="unknown setting 'stile'"):
        choose_panel("pairs", chat=chat(tmp_path, "m"), judge={"stile": "qwen"})
    with pytest.raises(ConfigError, match="no style"):
        choose_panel("pairs", chat=chat(tmp_path, "m"), judge={"style": "nobody"})
    with pytest.raises(ConfigError, match="base_url"):
        choose_panel("pairs", chat={}, judge={})
