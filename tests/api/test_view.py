"""`sy.view` serves in the background: a notebook goes on, and the port is free again after it."""

import socket
import sys
import urllib.error
import urllib.request

import pytest

import steelyard as sy
from parallel_cases import parallel_cases


def get(url):
    with urllib.request.urlopen(url, timeout=60) as answer:
        return answer.status, answer.read().decode()


@pytest.fixture(scope="module")
def folder(tmp_path_factory):
    root = tmp_path_factory.mktemp("runs") / "a & 实验"
    sy.evaluate("longer", parallel_cases(), out=root / "by length", num_resamples=10)
    return root


def test_the_runs_are_served_until_the_viewer_is_stopped(folder):
    viewer = sy.view(folder)
    status, page = get(viewer.url)
    assert status == 200
    assert "by length" in page
    assert f'href="{viewer.url}"' in viewer._repr_html_()
    assert "a &amp; 实验" in viewer._repr_html_()
    assert viewer.url in repr(viewer)
    viewer.stop()
    viewer.stop()
    assert not viewer.is_running
    assert "href" not in viewer._repr_html_()
    with pytest.raises(urllib.error.URLError):
        get(viewer.url)


def test_a_context_stops_at_its_end_and_two_viewers_have_ports_of_their_own(folder):
    with sy.view(folder) as first, sy.view(folder) as second:
        assert first.url != second.url
        assert get(first.url)[0] == get(second.url)[0] == 200
    assert not first.is_running
    assert not second.is_running


def test_errors_name_keywords_and_their_remedies_work(folder):
    with socket.socket() as taken:
        taken.bind(("127.0.0.1", 0))
        taken.listen()
        with pytest.raises(sy.errors.OutputError, match="cannot be opened") as caught:
            sy.view(folder, port=taken.getsockname()[1])
    assert "port=0" in caught.value.do
    sy.view(folder, port=0).stop()
    with pytest.raises(sy.errors.FileError, match="no such folder"):
        sy.view(folder / "absent")
    with pytest.raises(sy.errors.ConfigError, match="port is 70000"):
        sy.view(folder, port=70_000)


def test_without_the_extra_the_remedy_is_that_of_the_command(folder, monkeypatch):
    monkeypatch.setitem(sys.modules, "uvicorn", None)
    monkeypatch.delitem(sys.modules, "steelyard.viewing.server", raising=False)
    with pytest.raises(sy.errors.MissingPartError, match="this needs uvicorn") as caught:
        sy.view(folder)
    assert caught.value.do == "pip install 'steelyard[view]'"
