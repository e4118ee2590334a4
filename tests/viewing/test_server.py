"""The pages as a browser gets them: what they show in both languages, and what no address and no file can do."""

import json
import re
import threading
from html.parser import HTMLParser

import pytest
from starlette.testclient import TestClient

from evaluated_benches import evaluated_on_single, evaluated_on_two
from report_runs import HOSTILE, all_runs, evaluate_run, made_cases
from steelyard.core.errors import FileError, WaitingError
from steelyard.evaluation.config import Config
from steelyard.io.cases import write_cases
from steelyard.io.run_folder import result_folder
from steelyard.stages.evaluate import evaluate
from steelyard.viewing import runs as module
from steelyard.viewing.server import application

ADDRESS = "http://127.0.0.1:8765"


@pytest.fixture(autouse=True)
def at_once(monkeypatch):
    monkeypatch.setattr(module, "_MIN_SECONDS", -1.0)
    monkeypatch.setattr(module, "_PAUSE", -1.0)


@pytest.fixture(scope="module")
def folder(tmp_path_factory):
    root = tmp_path_factory.mktemp("runs") / "实验"
    root.mkdir()
    all_runs(root / "one", 8)
    return root


def client(folder, *, host="127.0.0.1", address=ADDRESS):
    return TestClient(application(folder, host=host), base_url=address)


class Text(HTMLParser):
    """The visible text of a page, and the tags in it."""

    def __init__(self, html):
        super().__init__()
        self.tags, self.words, self._open = [], [], []
        self.feed(html)

    def handle_starttag(self, tag, attrs):
        self.tags.append((tag, dict(attrs)))
        self._open.append(tag)

    def handle_endtag(self, tag):
        while self._open and self._open.pop() != tag:
            pass

    def handle_data(self, data):
        if not {"script", "style"} & set(self._open) and data.strip():
            self.words.append(data.strip())


def runs_of(shown):
    """Return the rows of the list by place."""
    return {attrs["data-place"]: attrs for tag, attrs in Text(shown).tags if tag == "tr" and "data-id" in attrs}


def id_of(browser, place):
    return runs_of(browser.get("/").text)[place]["data-id"]


def test_the_list_has_every_run_with_its_result_in_both_languages(folder):
    page = client(folder).get("/")
    assert page.status_code == 200
    rows = runs_of(page.text)
    assert {row["data-stage"] for row in rows.values()} >= {"resolve", "train", "evaluate"}
    words = Text(page.text).words
    assert {"finished", "已完成", "70.8%", "one", str(len(rows))} <= set(words)
    assert any(re.fullmatch(r"Accuracy on held-out prompts, n = \d+, final loss 0.367", one) for one in words)
    assert any(re.fullmatch(r"留出集准确率，n = \d+，最终损失 0.367", one) for one in words)


def test_the_language_of_the_browser_opens_the_page(folder):
    browser = client(folder)
    assert '<html lang="zh-Hans" data-ui="zh">' in browser.get("/", headers={"accept-language": "zh-CN,zh;q=0.9"}).text
    assert '<html lang="en" data-ui="en">' in browser.get("/", headers={"accept-language": "de"}).text


def test_every_run_has_a_page_that_leads_back(folder):
    browser = client(folder)
    rows = runs_of(browser.get("/").text)
    assert rows
    for place, row in rows.items():
        page = browser.get(f"/runs/{row['data-id']}")
        text = Text(page.text)
        assert page.status_code == 200
        assert ("a", {"href": "/"}) in text.tags
        assert place.rpartition("/")[2] in text.words
        assert len(text.words) > 30


def test_chosen_runs_give_one_report_which_is_made_once(folder, monkeypatch):
    browser = client(folder)
    rows = runs_of(browser.get("/").text)
    chosen = [("run", row["data-id"]) for row in rows.values() if row["data-stage"] in ("resolve", "train")]
    first = browser.get("/report", params=chosen)
    assert first.status_code == 200
    assert {"Conflicts", "Training"} <= set(Text(first.text).words)
    monkeypatch.setattr("steelyard.viewing.pages.read_data", None)
    assert browser.get("/report", params=chosen).text == first.text


def test_a_report_is_made_again_when_a_record_changes(tmp_path):
    cases = made_cases(8)
    evaluate_run(tmp_path / "e", cases)
    browser = client(tmp_path)
    before = browser.get(f"/runs/{id_of(browser, 'e')}").text
    record = json.loads((tmp_path / "e" / "run.json").read_text())
    record["summary"]["model"] = "models/another-name"
    (tmp_path / "e" / "run.json").write_text(json.dumps(record))
    after = browser.get(f"/runs/{id_of(browser, 'e')}").text
    assert ("another-name" in before, "another-name" in after) == (False, True)


@pytest.fixture(scope="module")
def evaluated(tmp_path_factory):
    """Two models on the same prompts, the first in two folders of one name."""
    root = tmp_path_factory.mktemp("evaluated")
    write_cases(root / "test.jsonl", made_cases(8))
    for place, model in (("甲/same", "longer"), ("b/same", "shorter")):
        evaluate([root / "test.jsonl"], root / place, Config(num_resamples=20), model=model)
    return root


@pytest.mark.parametrize(("address", "title"), [("/compare", "Comparison"), ("/leaderboard", "Leaderboard")])
def test_evaluations_are_compared_and_ranked(evaluated, address, title):
    browser = client(evaluated)
    chosen = [("run", row["data-id"]) for row in runs_of(browser.get("/").text).values()]
    answer = browser.get(address, params=chosen)
    words = Text(answer.text).words
    assert answer.status_code == 200
    assert title in {word.partition(":")[0].strip() for word in words}
    assert {"longer", "shorter"} <= {part for word in words for part in word.split()}


@pytest.mark.parametrize(
    ("language", "title"), [("en", "Models on several benches"), ("zh", "各模型在多个基准上的表现")]
)
def test_evaluations_of_several_benches_are_one_table(tmp_path, language, title):
    evaluated_on_single(tmp_path, "longer", "rrrrrrrrrw")
    evaluated_on_two(tmp_path, "longer", {"open": "rrrrrrrrww", "human": "rrrrrppppp"})
    browser = client(tmp_path)
    chosen = [("run", row["data-id"]) for row in runs_of(browser.get("/").text).values()]
    answer = browser.get("/leaderboard", params=[*chosen, ("lang", language)])
    assert answer.status_code == 200
    words = Text(answer.text).words
    assert title in {part.strip() for word in words for part in word.split("·")}
    assert {"90.0%", "73.3%"} <= set(words)


def test_runs_of_one_name_are_known_by_their_folders(evaluated):
    browser = client(evaluated)
    rows = runs_of(browser.get("/").text)
    assert set(rows) == {"甲/same", "b/same"}
    answer = browser.get("/report", params=[("run", row["data-id"]) for row in rows.values()])
    assert {"甲/same", "b/same"} <= set(Text(answer.text).words)


@pytest.mark.parametrize("address", ["/compare", "/leaderboard"])
def test_what_cannot_be_compared_is_explained(folder, address):
    browser = client(folder)
    rows = runs_of(browser.get("/").text)
    trained = next(row["data-id"] for row in rows.values() if row["data-stage"] == "train")
    answer = browser.get(address, params={"run": trained})
    assert answer.status_code == 400
    assert "Only evaluations can be compared: select two or more." in Text(answer.text).words


@pytest.mark.parametrize(
    ("address", "status", "sentence"),
    [
        ("/report", 400, "No run is selected. Select runs in the list first."),
        ("/report?run=0123456789abcdef", 404, "There is no such run here: it was removed, or the address is wrong."),
        ("/runs/0123456789abcdef", 404, "There is no such run here: it was removed, or the address is wrong."),
        ("/nothing", 404, "There is no such page here."),
        ("/runs/one", 404, "There is no such run here: it was removed, or the address is wrong."),
        ("/runs/..%2f..%2fetc%2fpasswd", 404, "There is no such page here."),
        ("/runs/%2e%2e", 404, "There is no such run here: it was removed, or the address is wrong."),
        ("/report?run=../../etc/passwd", 404, "There is no such run here: it was removed, or the address is wrong."),
        ("/runs/%00", 404, "There is no such run here: it was removed, or the address is wrong."),
        ("/one/run.json", 404, "There is no such page here."),
    ],
)
def test_an_address_reaches_nothing_else(folder, address, status, sentence):
    answer = client(folder).get(address)
    assert answer.status_code == status
    assert sentence in Text(answer.text).words
    assert "root:x:" not in answer.text


@pytest.mark.parametrize("after", ["", "-1", "x", "²", "9" * 400, "1e3", "0x10"])
def test_a_foreign_version_gets_everything_or_nothing(folder, after):
    answer = client(folder).get("/changes", params={"after": after})
    assert answer.status_code == 200
    assert answer.json()["version"] > 0


@pytest.mark.parametrize(
    ("host", "status"),
    [
        ("127.0.0.1:8765", 200),
        ("localhost", 200),
        ("LOCALHOST:1", 200),
        ("[::1]:8765", 200),
        ("evil.example", 421),
        ("evil.example:8765", 421),
        ("127.0.0.1.evil.example", 421),
        ("localhost.evil.example", 421),
        ("192.168.1.5", 421),
        ("", 421),
        ("[", 421),
    ],
)
def test_only_names_of_this_machine_are_answered(folder, host, status):
    answer = client(folder).get("/", headers={"host": host})
    assert answer.status_code == status
    assert ("data-id" in answer.text) == (status == 200)


@pytest.mark.parametrize(("host", "status"), [("10.0.0.7:80", 200), ("lab.example", 200), ("evil.example", 421)])
def test_a_named_host_answers_to_its_name_and_to_addresses(folder, host, status):
    assert client(folder, host="lab.example").get("/", headers={"host": host}).status_code == status


@pytest.mark.parametrize("method", ["POST", "PUT", "DELETE", "PATCH", "OPTIONS", "TRACE"])
def test_only_reading_is_allowed(folder, method):
    answer = client(folder).request(method, "/")
    assert (answer.status_code, answer.headers["allow"]) == (405, "GET, HEAD")


@pytest.mark.parametrize("address", ["/", "/changes?after=0", "/nothing", "/report"])
def test_no_other_site_can_read_frame_or_feed_a_page(folder, address):
    headers = client(folder).get(address).headers
    assert "frame-ancestors 'none'" in headers["content-security-policy"]
    assert headers["cross-origin-resource-policy"] == "same-origin"
    assert headers["x-content-type-options"] == "nosniff"
    assert "access-control-allow-origin" not in headers


def test_the_scripts_of_a_page_are_those_that_its_policy_names(folder):
    import base64
    import hashlib

    page = client(folder).get("/").text
    policy = re.search(r'http-equiv="Content-Security-Policy" content="([^"]+)"', page)[1]
    scripts = re.findall(r"<script>(.*?)</script>", page, flags=re.DOTALL)
    hashes = [base64.b64encode(hashlib.sha256(script.encode()).digest()).decode() for script in scripts]
    assert len(scripts) == 2
    assert policy.split("script-src ")[1].split() == [f"'sha256-{value}'" for value in hashes]


def test_names_and_texts_of_all_kinds_are_shown_and_never_run(tmp_path):
    names = ['שלום & "x"', "<img src=x onerror=alert(1)>", "$x^2$ {{ 7*7 }}", "नमस्ते", "日本語 @@state_failed|x@@"]
    for name in names:
        with result_folder(tmp_path / name, "merge", config={"model": HOSTILE}, inputs={}):
            pass
    page = client(tmp_path).get("/").text
    text = Text(page)
    assert set(names) <= set(text.words)
    assert not [tag for tag, attrs in text.tags if tag == "img" or "onerror" in attrs]
    assert page.count("<script>") == 2
    assert "49" not in text.words


def test_a_failed_run_shows_its_error_and_a_broken_one_its_reason(tmp_path):
    with pytest.raises(ValueError, match="<b>"):
        fail(tmp_path / "failed")
    (tmp_path / "broken").mkdir()
    (tmp_path / "broken" / "run.json").write_text("{")
    browser = client(tmp_path)
    failed = Text(browser.get(f"/runs/{id_of(browser, 'failed')}").text)
    assert {"<b>内存不足</b>", "failed", "depth", "7"} <= set(failed.words)
    assert not [tag for tag, _ in failed.tags if tag == "progress"]
    broken = Text(browser.get(f"/runs/{id_of(browser, 'broken')}").text)
    assert "The record of this run cannot be read." in broken.words
    report = browser.get("/report", params={"run": id_of(browser, "failed")})
    assert report.status_code == 409
    assert "failed" in Text(report.text).words


def fail(folder, error=None):
    with result_folder(folder, "train", config={"depth": 7}, inputs={}) as result:
        result.path("half").write_text("")
        raise error or ValueError("<b>内存不足</b>")


def test_a_run_whose_files_are_broken_is_explained(tmp_path):
    evaluate_run(tmp_path / "e", made_cases(8))
    (tmp_path / "e" / "items.jsonl").write_text("{\n")
    browser = client(tmp_path)
    answer = browser.get(f"/runs/{id_of(browser, 'e')}")
    assert answer.status_code == 422
    assert "items.jsonl:1" in answer.text


def test_an_empty_folder_says_how_to_fill_it(tmp_path):
    words = Text(client(tmp_path).get("/").text).words
    assert any("No runs here yet" in word for word in words)
    assert any("这里还没有运行" in word for word in words)


def test_an_open_list_is_told_what_changed(tmp_path):
    browser = client(tmp_path)
    version = browser.get("/changes?after=-1").json()["version"]
    with result_folder(tmp_path / "新 run", "merge", config={}, inputs={}):
        news = browser.get(f"/changes?after={version}").json()
        (row,) = news["rows"].values()
        assert {"running", "运行中", "新 run"} <= set(Text(row).words)
        (identifier,) = news["rows"]
        live = browser.get(f"/runs/{identifier}/live").json()
        assert live["state"] == "running"
        assert {"新 run", "merge"} <= set(Text(live["html"]).words)
    later = browser.get(f"/changes?after={news['version']}").json()
    assert list(later["rows"]) == [identifier]
    assert "finished" in Text(later["rows"][identifier]).words
    assert browser.get(f"/runs/{identifier}/live").json() == {"state": "finished"}
    assert browser.get("/runs/0123456789abcdef/live").json() == {"state": "gone"}


@pytest.mark.parametrize("updated", [1e18, -1e18, 1e308])
def test_a_damaged_state_of_one_run_leaves_the_list_readable(tmp_path, updated):
    with result_folder(tmp_path / "good", "merge", config={}, inputs={}):
        pass
    with pytest.raises(ValueError, match="<b>"):
        fail(tmp_path / "odd")
    state = json.loads((tmp_path / "odd" / ".running.json").read_text())
    (tmp_path / "odd" / ".running.json").write_text(json.dumps(state | {"updated": updated, "started": -updated}))
    browser = client(tmp_path)
    assert set(runs_of(browser.get("/").text)) == {"good", "odd"}
    assert browser.get(f"/runs/{id_of(browser, 'odd')}").status_code == 200
    assert browser.get("/changes?after=-1").status_code == 200


def test_a_run_that_waits_is_shown_with_the_number_and_what_to_do_and_not_as_an_error(tmp_path):
    problem = WaitingError("1,234 of 2,000 items wait for people", do="serve the workbench", num_waiting=1234)
    with pytest.raises(WaitingError):
        fail(tmp_path / "asked", problem)
    browser = client(tmp_path)
    page = browser.get(f"/runs/{id_of(browser, 'asked')}").text
    words = " ".join(Text(page).words)
    shown = (
        "waiting",
        "等待中",
        "waited for when it ran last:",
        "等待的条目数或请求数：",
        "1,234",
        "serve the workbench",
    )
    for expected in (*shown, "What it waits for", "等待的内容"):
        assert expected in words, expected
    assert ">Error<" not in page


def test_a_page_that_is_made_does_not_wait_for_one_in_the_making(evaluated, monkeypatch):
    browser = client(evaluated)
    first, second = (row["data-id"] for row in runs_of(browser.get("/").text).values())
    assert browser.get(f"/runs/{first}").status_code == 200
    begun, free, waits = threading.Event(), threading.Event(), []

    def slow(*_):
        begun.set()
        waits.append(free.wait(300))
        raise FileError("slow")

    monkeypatch.setattr("steelyard.viewing.pages.read_data", slow)
    thread = threading.Thread(target=browser.get, args=(f"/runs/{second}",))
    thread.start()
    assert begun.wait(300)
    assert browser.get(f"/runs/{first}").status_code == 200
    free.set()
    thread.join()
    assert waits == [True]


def test_a_refused_host_says_how_to_open_the_page(folder):
    answer = client(folder, host="0.0.0.0").get("/", headers={"host": "lab.example:8765"})
    assert answer.status_code == 421
    assert "start it for that host" in answer.text
