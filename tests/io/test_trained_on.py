import pytest
from hypothesis import given
from hypothesis import strategies as st

from steelyard.core.errors import FileError
from steelyard.io.trained_on import TRAINED_ON_FILE, read_trained_on, trained_on, write_trained_on
from strategies import case


def test_prompts_are_known_by_first_turn_and_by_id(tmp_path):
    write_trained_on(
        tmp_path / TRAINED_ON_FILE,
        [case("t1", text="Ｗhat  is IT?", language="en"), case("t2", text="什么?", language="zh")],
        base=tmp_path / "nowhere",
    )
    found = read_trained_on(tmp_path)
    assert found is not None
    assert found.languages == {"en", "zh"}
    assert [found.has_text(case("x", text=text)) for text in ("what is it?", "什么?", "what is it")] == [
        True, True, False,
    ]  # fmt: skip
    assert [found.has_id(case(name)) for name in ("t1", "t2", "t3")] == [True, True, False]


def test_the_file_is_32_bytes_a_prompt_and_holds_no_text(tmp_path):
    path = tmp_path / TRAINED_ON_FILE
    write_trained_on(path, [case(f"t{n}", text=f"a secret {n}") for n in range(1000)], base=tmp_path / "nowhere")
    assert path.stat().st_size < 32 * 1000 + 100
    assert b"secret" not in path.read_bytes()


def test_what_the_base_model_was_trained_on_is_kept(tmp_path):
    write_trained_on(tmp_path / "a" / TRAINED_ON_FILE, [case("first", text="one")], base=tmp_path / "nowhere")
    write_trained_on(tmp_path / "b" / TRAINED_ON_FILE, [case("second", text="two")], base=tmp_path / "a")
    assert read_trained_on(tmp_path / "b") == trained_on([case("first", text="one"), case("second", text="two")])


def test_a_folder_without_hashes_says_nothing_and_a_broken_file_is_named(tmp_path):
    path = tmp_path / TRAINED_ON_FILE
    assert read_trained_on(tmp_path) is None
    write_trained_on(path, [case("a", text="one"), case("b", text="two")], base=tmp_path)
    whole = path.read_bytes()
    path.write_bytes(whole[:-1])
    with pytest.raises(FileError, match="cut off"):
        read_trained_on(tmp_path)
    for broken in (b"", b"{}\n", b"\xff" * 40, whole.partition(b"\n")[2]):
        path.write_bytes(broken)
        with pytest.raises(FileError, match=r"trained_on\.hashes: not hashes"):
            read_trained_on(tmp_path)


@given(st.lists(st.text(max_size=8), max_size=6), st.text(max_size=8))
def test_a_set_of_ids_is_what_is_kept(ids, other):
    found = trained_on(case(name, text="same") for name in ids)
    assert found.has_id(case(other)) == (other in ids)
    assert len(found.texts) == min(1, len(ids))
