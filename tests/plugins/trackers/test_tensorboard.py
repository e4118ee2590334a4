import struct

import pytest

from steelyard.core.plugins import build

event_pb2 = pytest.importorskip("tensorboardX.proto.event_pb2", reason="tensorboardX is not installed")


def events(folder):
    """The events of all files, by the format of TensorFlow's records: a length, its check, the event, its check."""
    found = []
    for path in sorted((folder / "tensorboard").iterdir()):
        content = path.read_bytes()
        place = 0
        while place < len(content):
            (length,) = struct.unpack_from("<Q", content, place)
            found.append(event_pb2.Event.FromString(content[place + 12 : place + 12 + length]))
            place += 12 + length + 4
    return found


def tracker(folder, start=0):
    return build("trackers", "tensorboard", {}, folder=folder, name="run", run_settings={"epochs": 2}, start=start)


def test_the_event_file_holds_every_point(tmp_path):
    one = tracker(tmp_path)
    one.log(1, {"train/loss": 0.5})
    one.log(2, {"train/loss": 0.25, "held_out/accuracy": 1.0})
    one.close()
    points = [
        (event.step, value.tag, value.simple_value)
        for event in events(tmp_path)
        for value in event.summary.value
        if value.WhichOneof("value") == "simple_value"
    ]
    assert points == [(1, "train/loss", 0.5), (2, "train/loss", 0.25), (2, "held_out/accuracy", 1.0)]


def test_what_comes_after_the_checkpoint_is_hidden_and_a_new_run_begins_afresh(tmp_path):
    tracker(tmp_path).close()
    tracker(tmp_path, start=2).close()
    starts = [event.step for event in events(tmp_path) if event.HasField("session_log")]
    assert starts == [3]
    tracker(tmp_path).close()
    assert len(list((tmp_path / "tensorboard").iterdir())) == 1
