"""Answers to requests that are not carried out: status, headers, kind of content, language, nothing of the inside."""

import ast
import re
from inspect import signature

import pytest
from starlette.testclient import TestClient

from each_value import each
from package_source import sources
from steelyard.core import errors
from steelyard.core.errors import ConfigError, FileError, Place, RecordError, UserError
from steelyard.workbench.accounts.permissions import COOKIE
from steelyard.workbench.storage.database import Database
from steelyard.workbench.storage.database_errors import NoRoomError, UnavailableError
from steelyard.workbench.views.pages import refusal_text, words_of
from workbench_site import PASSWORD, SECRETS

PROTECTION = (
    "content-security-policy",
    "cross-origin-opener-policy",
    "cross-origin-resource-policy",
    "referrer-policy",
    "x-content-type-options",
    "x-frame-options",
)


def log_in(client, password=PASSWORD):
    return client.post("/login", data={"name": "annotator", "password": password})


def failing(visit, monkeypatch, method, error, *, name=None):
    """A client of a workbench whose database raises an error."""

    def fail(*_, **__):
        raise error

    monkeypatch.setattr(Database, method, fail)
    client = TestClient(visit.app, follow_redirects=False, raise_server_exceptions=False)
    if name is not None:
        client.cookies.set(COOKIE, visit.site.cookies[name])
    return client


def check(answer, status, *, is_data):
    """Check what all answers of a kind have in common."""
    assert answer.status_code == status
    kind = answer.headers["content-type"]
    assert kind == ("application/json" if is_data else "text/html; charset=utf-8")
    if is_data:
        assert answer.json().keys() == {"error"}
        assert answer.json()["error"]
    else:
        assert '<html lang="' in answer.text
    for name in PROTECTION:
        assert len(answer.headers.get_list(name)) == 1, name
    assert "unsafe" not in answer.headers["content-security-policy"]
    assert answer.headers["cache-control"] == "no-store"
    assert not SECRETS.search(answer.text)
    return answer


@pytest.mark.parametrize("path", ["/login", "/manage", "/absent", "/api/v1/projects", "/static/workbench.css"])
def test_a_head_has_the_status_and_headers_of_the_page(visit, path):
    """What watches a server whether it is up asks for no more."""
    for client in (visit.browser(), visit.browser("administrator")):
        asked, read = client.head(path), client.get(path)
        assert (asked.status_code, dict(asked.headers)) == (read.status_code, dict(read.headers))


@pytest.mark.parametrize(
    ("method", "path", "allowed", "is_data"),
    [
        ("PUT", "/manage", "GET", False),
        ("PUT", "/manage/people", "GET, POST", False),
        ("GET", "/manage/projects", "POST", False),
        ("DELETE", "/login", "GET, POST", False),
        ("POST", "/static/workbench.css", "GET, HEAD", False),
        ("DELETE", "/api/v1/projects", "GET, POST", True),
        ("GET", "/api/v1/projects/1/import", "POST", True),
    ],
)
def test_a_method_that_an_address_does_not_take_names_those_that_it_does(visit, method, path, allowed, is_data):
    answer = check(visit.browser("administrator").request(method, path), 405, is_data=is_data)
    assert answer.headers["allow"] == allowed


def test_a_program_without_a_token_is_told_how_to_log_in(visit):
    for client in (visit.browser(), visit.program(visit.site.revoked)):
        answer = check(client.get("/api/v1/projects"), 401, is_data=True)
        assert answer.headers["www-authenticate"] == "Bearer"


def test_too_many_failed_logins_say_when_to_try_again(visit):
    client = visit.browser()
    assert {check(log_in(client, password="wrong"), 401, is_data=False).status_code for _ in range(8)} == {401}
    answer = check(log_in(client), 429, is_data=False)
    assert 840 < int(answer.headers["retry-after"]) <= 900
    assert "15 min" in answer.text
    # The page on which the password is changed counts the same failures.
    form = {"old": PASSWORD, "new": "another password", "csrf": visit.csrf("annotator")}
    answer = check(visit.browser("annotator").post("/account/password", data=form), 429, is_data=False)
    assert 840 < int(answer.headers["retry-after"]) <= 900
    assert "15 min" in answer.text


def test_what_is_too_large_is_refused_as_a_page_and_as_data(visit):
    text = "x" * (2 * 2**20)
    form = {"name": text, "csrf": visit.csrf("administrator")}
    check(visit.browser("administrator").post("/manage/projects", data=form), 413, is_data=False)
    program = visit.program(visit.site.tokens["administrator"])
    check(program.post("/api/v1/projects", json={"name": text}), 413, is_data=True)


@pytest.mark.parametrize(("path", "is_data"), [("/manage", False), ("/api/v1/projects", True)])
def test_a_database_that_is_away_or_full_is_said_with_the_same_headers(visit, monkeypatch, path, is_data):
    client = failing(visit, monkeypatch, "reading", UnavailableError("gone"), name="administrator")
    assert check(client.get(path), 503, is_data=is_data).headers["retry-after"] == "10"
    client = failing(visit, monkeypatch, "reading", NoRoomError("full"), name="administrator")
    check(client.get(path), 507, is_data=is_data)


@pytest.mark.parametrize(("error", "status"), [(UnavailableError("gone"), 503), (NoRoomError("full"), 507)])
def test_a_refusal_whose_reader_cannot_be_looked_up_is_to_be_sent_again(visit, monkeypatch, error, status):
    failing(visit, monkeypatch, "write", ConfigError("a value that cannot be stored"))
    client = failing(visit, monkeypatch, "looking_up", error, name="annotator")
    check(log_in(client), status, is_data=False)


@pytest.mark.parametrize(("path", "is_data"), [("/manage", False), ("/api/v1/projects", True)])
def test_a_fault_is_a_page_or_data_without_a_word_of_the_inside(visit, monkeypatch, path, is_data):
    client = failing(visit, monkeypatch, "reading", RuntimeError("sqlite site.db"), name="administrator")
    check(client.get(path), 500, is_data=is_data)


@pytest.mark.parametrize("method", ["looking_up", "reading"])
def test_a_page_that_does_not_exist_stays_one_while_the_database_is_away(visit, monkeypatch, method):
    client = failing(visit, monkeypatch, method, UnavailableError("gone"))
    check(client.get("/nothing"), 404, is_data=False)


@pytest.mark.parametrize("host", ["evil.example", "testserver.evil.example", "testserver/x", "", "testserver:x"])
def test_another_host_is_refused_as_a_page_and_as_data(visit, host):
    for path, is_data in (("/login", False), ("/api/v1/projects", True), ("/static/workbench.css", False)):
        answer = check(visit.browser("administrator").get(path, headers={"host": host}), 400, is_data=is_data)
        assert "evil" not in answer.text


@pytest.mark.parametrize("language", ["en", "zh"])
def test_another_host_is_refused_with_the_setting_and_no_option_of_a_command(visit, language):
    headers = {"host": "evil.example", "accept-language": language}
    for accept in ("text/html", "application/json"):
        refused = visit.browser().get("/login", headers=headers | {"accept": accept})
        assert refused.status_code == 400
        assert "public_name" in refused.text
        assert "--" not in refused.text.partition("<main>")[2]


def test_two_hosts_in_a_request_are_none(visit):
    headers = [("host", "testserver"), ("host", "evil.example")]
    check(visit.browser().get("/login", headers=headers), 400, is_data=False)


@pytest.mark.parametrize(("language", "words"), [("zh-CN", "该地址不接受此类请求"), ("de", "takes no such request")])
def test_pages_of_errors_are_in_the_language_of_the_reader(visit, language, words):
    answer = visit.browser().put("/login", headers={"accept-language": language})
    assert words in answer.text
    assert '<html lang="zh">' in answer.text or language == "de"


CHINESE, ENGLISH = re.compile("[\u4e00-\u9fff]"), re.compile(r"\b(?!steelyard )[a-z]+ [a-z]+ [a-z]+")


def kinds_of_errors():
    """Every class of errors of the core that a user can cause; subclasses elsewhere depend on what is imported."""
    return [each for each in vars(errors).values() if isinstance(each, type) and issubclass(each, UserError)]


PLACES = {
    None: "不符合要求", "x.jsonl": "", Place("x.jsonl", 3, "prompt.id"): "x.jsonl 第 3 行有误（prompt.id）",
    Place("x.jsonl", 3): "x.jsonl 第 3 行有误，",
    "gold_share": "“标准答案任务的占比”", "rules.num_annotators": "“每个任务的标注人数”",
}  # fmt: skip


@each("where", PLACES)
@each("kind", [each for each in kinds_of_errors() if "words" not in signature(each).parameters])
def test_every_error_of_the_core_is_a_chinese_sentence_on_a_chinese_page(kind, where):
    error = kind("a problem with several words", where=where, allowed="some values in English", do="do this and that")
    sentence = refusal_text(error, "zh")
    assert CHINESE.search(sentence)
    assert not ENGLISH.search(sentence)
    assert PLACES[where] in sentence or issubclass(kind, FileError | RecordError)
    assert "（）" not in sentence
    assert refusal_text(error, "en") == str(error)


@pytest.mark.slow
def test_every_refusal_of_the_workbench_has_its_sentence_in_both_languages():
    keys = set()
    for source in sources():
        for node in ast.walk(source.tree):
            if isinstance(node, ast.Call) and getattr(node.func, "id", None) == "RefusedError":
                (words,) = [each.value for each in node.keywords if each.arg == "words"]
                keys |= {words.value} if isinstance(words, ast.Constant) else set()
    assert len(keys) > 25
    for language in ("en", "zh"):
        assert not {key for key in keys if f"refused {key}" not in words_of(language)}
