import pytest

from steelyard.core.errors import ConfigError, FileError
from steelyard.io.settings import read_toml


def test_settings_are_read_with_the_mark_that_some_editors_leave(tmp_path):
    path = tmp_path / "s.toml"
    path.write_bytes(b"\xef\xbb\xbf" + 'seed = 3\r\n[chat]\r\nabout = "杆秤"\r\n'.encode())
    assert read_toml(path) == {"seed": 3, "chat": {"about": "杆秤"}}


@pytest.mark.parametrize(
    ("content", "error", "said"),
    [
        (b"seed 3", ConfigError, "not valid TOML: Expected '=' after a key"),
        (b'about = "\xe9"', FileError, r"byte 10 is not UTF-8 \(0xe9\)"),
        (b"\xff\xfes\x00", FileError, "this is UTF-16, not text in UTF-8"),
        (b"\x1f\x8b\x08", FileError, "this is gzip"),
    ],
)
def test_what_is_no_settings_file_is_refused_by_name(tmp_path, content, error, said):
    path = tmp_path / "s.toml"
    path.write_bytes(content)
    with pytest.raises(error, match=rf"s\.toml: {said}"):
        read_toml(path)
