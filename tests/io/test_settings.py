import base64
import json
from urllib.parse import quote

import pytest

from steelyard.core.errors import ConfigError, FileError
from steelyard.io.addresses import HIDDEN, Key, check_address, read_key
from steelyard.io.lines import read_toml


def test_settings_are_read_with_the_mark_that_some_editors_leave(tmp_path):
    path = tmp_path / "s.toml"
    path.write_bytes(b"\xef\xbb\xbf" + 'seed = 3\r\n[chat]\r\nabout = "杆秤"\r\n'.encode())
    assert read_toml(path) == {"seed": 3, "chat": {"about": "杆秤"}}


@pytest.mark.parametrize(
    ("content", "error", "said"),
    [
        (b"seed 3", ConfigError, " not valid TOML: Expected '=' after a key"),
        (b'about = "\xe9"', FileError, r"1: byte 10 is not UTF-8 \(0xe9\)"),
        ("seed = 3".encode("utf-16-le"), FileError, " this is UTF-16LE, not text in UTF-8"),
        (b"\x1f\x8b\x08", FileError, " the gzip file is cut off"),
    ],
)
def test_what_is_no_settings_file_is_refused_by_name(tmp_path, content, error, said):
    path = tmp_path / "s.toml"
    path.write_bytes(content)
    with pytest.raises(error, match=rf"s\.toml:{said}"):
        read_toml(path)


SECRET = 'sk-A/b+c&d"9'


@pytest.mark.parametrize(
    "spelling",
    [SECRET, SECRET.upper(), SECRET.lower(), quote(SECRET, safe=""), json.dumps(SECRET), SECRET.replace("/", "\\/"),
     base64.b64encode(SECRET.encode()).decode(), base64.b64encode(f":{SECRET}".encode()).decode()],
)  # fmt: skip
def test_the_key_is_hidden_in_every_spelling(spelling):
    found = Key(SECRET).redact({"a": [f"x {spelling} y", 3], spelling: None})
    assert found["a"][0].startswith("x ")
    assert HIDDEN in found["a"][0]
    assert HIDDEN in next(name for name in found if name != "a")
    assert SECRET.lower() not in str(found).lower()


def test_a_text_without_the_key_stays_as_it_is():
    value = {"text": "[[A]] 杆秤", "odds": [1.5, None, True]}
    assert Key(SECRET).redact(value) == value
    assert Key().redact(value) is value


def test_the_key_has_no_text_form():
    assert SECRET not in f"{Key(SECRET)!r} {Key(SECRET)}"


@pytest.mark.parametrize("name", ["sk-1234567890abcdef", "AIzaSyD1234567890", "0123456789abcdef"])
def test_a_key_in_place_of_the_name_of_its_variable_is_not_shown(name):
    with pytest.raises(ConfigError, match="of this name") as caught:
        read_key(name, where="chat.secret")
    assert name not in str(caught.value)


@pytest.mark.parametrize("value", ["abc", "two words", "schlüssel", "a\x00bcd", "line\nbreak"])
def test_what_is_no_key_is_refused_without_being_shown(value, monkeypatch):
    monkeypatch.setattr("os.environ", {"K": value})
    with pytest.raises(ConfigError) as refused:
        read_key("K", where="chat.secret")
    assert value not in str(refused.value)


def test_white_space_around_a_key_is_none_of_it(monkeypatch):
    monkeypatch.setenv("K", " a-key\n")
    assert read_key("K", where="x").headers() == {"Authorization": "Bearer a-key"}
    assert read_key(None, where="x").headers() == {}


@pytest.mark.parametrize(
    "url",
    ["http://user:pa55word@host/v1", "https://pa55word@host", "http://host/v1?api_key=pa55word",
     "http://host/?x=1&access-token=pa55word", "ftp://pa55word", "host/pa55word", "http:///pa55word",
     "http://host:99999/pa55word", "http://host/pa55 word", "http://[::1/pa55word", "http://host/pa55word\r\nX: y"],
)  # fmt: skip
def test_an_address_with_a_secret_or_none_is_refused_without_being_shown(url):
    with pytest.raises(ConfigError) as refused:
        check_address(url, where="chat.base_url")
    assert "pa55" not in str(refused.value)
    assert "chat.base_url" in str(refused.value)


@pytest.mark.parametrize(
    "url", ["http://localhost:8000/v1", "https://a.b/openai?api-version=2024-06-01", "http://[::1]:8"]
)
def test_an_ordinary_address_is_allowed(url):
    check_address(url, where="x")
