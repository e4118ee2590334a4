import json

from typer.testing import CliRunner

from steelyard.core.plugins import kinds, rooms
from steelyard.doors.cli import build_app


def test_every_plugin_is_listed_with_what_it_is():
    listed = json.loads(CliRunner().invoke(build_app(), ["list", "--json"]).output)
    assert set(listed) == set(rooms())
    for room in rooms():
        assert set(listed[room]) == set(kinds(room))
        assert all(listed[room].values())


def test_one_room_as_text():
    output = CliRunner().invoke(build_app(), ["list", "formats"]).output
    assert output.startswith("formats\n")
    assert "models" not in output.split("\n")[0]
