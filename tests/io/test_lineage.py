import re

from huggingface_hub.errors import HFValidationError
from huggingface_hub.utils import validate_repo_id
from hypothesis import given
from hypothesis import strategies as st

from steelyard.io.lineage import is_dataset_name, record_folder, source_datasets

parts = st.from_regex(re.compile(r"[A-Za-z0-9_.-]{1,6}(/[A-Za-z0-9_.-]{1,6})?(\\.git)?", re.ASCII), fullmatch=True)


def is_accepted(name):
    try:
        validate_repo_id(name)
    except HFValidationError:
        return False
    return True


@given(parts | st.text(max_size=12) | st.sampled_from(["squad", "allenai/reward-bench", "a/" + "b" * 96, "a" * 97]))
def test_names_are_those_of_the_hubs_own_library(name):
    # The library accepts letters of every script; the Hub itself does not.
    assert is_dataset_name(name) == (is_accepted(name) and name.isascii() and not name.endswith("\n"))


def test_broken_and_foreign_records_name_nothing(tmp_path):
    file = tmp_path / "cases.jsonl"
    file.touch()
    record_folder(file).mkdir()
    for content in (b"", b"{", b"[]", b'{"outputs": 3}', b'{"outputs": {"cases.jsonl": "x"}, "datasets": ["../x"]}'):
        (record_folder(file) / "run.json").write_bytes(content)
        assert source_datasets([(file, "x")]) == ()
    (record_folder(file) / "run.json").write_bytes(b'{"outputs": {"cases.jsonl": "x"}, "datasets": ["a/b"]}')
    assert source_datasets([(file, "x")]) == ("a/b",)
    assert source_datasets([(file, "y")]) == ()
