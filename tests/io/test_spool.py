import sqlite3

import pytest
from hypothesis import given
from hypothesis import strategies as st

from steelyard.core.errors import OutputError
from steelyard.io.spool import Spooled, open_spool


@given(st.lists(st.tuples(st.sampled_from([b"a", b"b", b"\x00"]), st.integers(0, 9), st.binary(max_size=5))))
def test_lines_come_back_by_key_in_their_order(tmp_path_factory, kept):
    folder = tmp_path_factory.mktemp("spool")
    with open_spool(folder) as spool:
        for key, source, line in kept:
            spool.keep(key, source, line)
        spool.index()
        for key in (b"a", b"b", b"\x00", b"absent"):
            assert spool.take(key) == [Spooled(source, line) for own, source, line in kept if own == key]
    assert not list(folder.iterdir())


def test_what_a_kill_left_is_not_taken_up(tmp_path):
    (tmp_path / ".spool.sqlite.part").write_bytes(b"anything")
    with open_spool(tmp_path) as spool:
        spool.keep(b"a", 0, b"line")
        assert spool.take(b"a") == [Spooled(0, b"line")]


def test_a_full_disk_is_said(tmp_path):
    with pytest.raises(OutputError, match=r"cannot be written \(database or disk is full\)"), open_spool(tmp_path):
        raise sqlite3.OperationalError("database or disk is full")
    assert not list(tmp_path.iterdir())
