import json

import pytest

from chat_server import record, request
from steelyard.core.errors import FileError, RecordError
from steelyard.core.plugins import build
from steelyard.plugins.chats.recorded import question_id


def chat(tmp_path, *lines, **settings):
    own = record(tmp_path / "r.jsonl", *lines)
    return build("chats", "recorded", {"path": own["path"], **settings})


def test_the_nearest_line_answers(tmp_path):
    lines = [
        {"text": "anything"},
        {"contains": ["云", "雨"], "text": "both"},
        {"contains": ["云"], "text": "cloud"},
        {"question": question_id(request(text="this one, 云")), "text": "this"},
    ]
    asked = ["this one, 云", "云 and 雨", "云", "sun"]
    replies = chat(tmp_path, *lines).ask([request(str(place), text) for place, text in enumerate(asked)])
    assert [(one.request, one.text) for one in replies] == [
        ("0", "this"),
        ("1", "both"),
        ("2", "cloud"),
        ("3", "anything"),
    ]


def test_what_is_not_recorded_has_failed(tmp_path):
    (reply,) = chat(tmp_path, {"contains": ["x"], "text": "y"}).ask([request(text="z")])
    assert (reply.failure, reply.text) == ("failed", None)
    assert question_id(request(text="z")) in reply.detail


def test_failures_and_first_tokens_are_recorded_too(tmp_path):
    line = {"failure": "cut off", "text": "so", "first_token": [{"token": "A", "logprob": -0.5}], "reply_tokens": 1}
    (reply,) = chat(tmp_path, line).ask([request()])
    assert (reply.failure, reply.text, reply.first_token[0].token, reply.reply_tokens) == ("cut off", "so", "A", 1)


@pytest.mark.parametrize("line", ["{", "[]", '{"txt": "x"}', "{}", '{"failure": "bored"}'])
def test_a_line_that_is_no_recording_is_named(tmp_path, line):
    (tmp_path / "r.jsonl").write_text(json.dumps({"text": "x"}) + "\n" + line + "\n")
    with pytest.raises(RecordError, match=r"r\.jsonl:2"):
        build("chats", "recorded", {"path": str(tmp_path / "r.jsonl")})


def test_an_absent_file_is_named(tmp_path):
    with pytest.raises(FileError):
        build("chats", "recorded", {"path": str(tmp_path / "absent.jsonl")})


def test_other_recordings_are_another_protocol(tmp_path):
    one, two = chat(tmp_path, {"text": "x"}), chat(tmp_path, {"text": "y"}, name="other")
    assert one.protocol() != two.protocol()
    assert (one.name, two.name) == ("recorded", "other")
