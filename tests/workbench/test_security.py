"""What protects the workbench besides permissions: cookies, throttling, headers, sizes of requests, names of hosts."""

import re
import threading
import time
from collections import Counter
from concurrent.futures import ThreadPoolExecutor

import pytest
from argon2 import PasswordHasher
from sqlalchemy import select

from steelyard.workbench.accounts import people
from steelyard.workbench.accounts.people import SESSION_SECONDS
from steelyard.workbench.accounts.permissions import COOKIE
from steelyard.workbench.application import Options, application
from steelyard.workbench.storage.tables import StoredLoginAttempt, StoredPerson
from workbench_routes import OPEN
from workbench_site import PASSWORD, SECRETS


def log_in(client, name="annotator", password=PASSWORD, **arguments):
    return client.post("/login", data={"name": name, "password": password}, **arguments)


@pytest.mark.parametrize("is_secure", [False, True])
def test_the_cookie_is_for_this_site_and_not_for_scripts(visit, is_secure):
    visit.app = application(visit.database, Options(hosts=("testserver",), is_secure=is_secure))
    answer = log_in(visit.browser())
    assert answer.status_code == 303
    names = [f"{COOKIE}=", "steelyard_device_"]
    for cookie, expected in zip(answer.headers.get_list("set-cookie"), names, strict=True):
        name, *flags = [part.strip().lower() for part in cookie.split(";")]
        assert name.startswith(expected)
        seconds = SESSION_SECONDS if expected == names[0] else 400 * 24 * 3600
        assert {"httponly", "samesite=strict", "path=/", f"max-age={int(seconds)}"} <= set(flags)
        assert ("secure" in flags) == is_secure
    assert ("strict-transport-security" in answer.headers) == is_secure


def test_a_forged_cookie_opens_nothing(visit):
    cookie = visit.site.cookies["administrator"]
    token, _, signature = cookie.rpartition(".")
    other = visit.site.cookies["annotator"].rpartition(".")[2]
    for forged in (token, f"{token}.{signature[:-2]}AA", f"{token}.{other}", f"x{cookie}", "", "\u00e9.\u00e9"):
        sent = {"cookie": f"{COOKIE}={forged}".encode()}
        assert visit.browser().get("/manage", headers=sent).headers["location"] == "/login", forged


def test_every_answer_has_the_headers_that_keep_scripts_out(visit):
    pages = (visit.browser().get("/login"), visit.browser("administrator").get("/manage"), visit.browser().get("/none"))
    for answer in (*pages, visit.browser().get("/api/v1/projects"), visit.browser().get("/static/workbench.css")):
        policy = answer.headers["content-security-policy"]
        assert "default-src 'self'" in policy
        assert "unsafe" not in policy
        assert "frame-ancestors 'none'" in policy
        assert answer.headers["x-content-type-options"] == "nosniff"
        assert answer.headers["referrer-policy"] == "same-origin"
    for answer in pages:
        assert answer.headers["cache-control"] == "no-store"
        assert not re.search(r"<script(?![^>]*\bsrc=)(?![^>]*application/json)|\son\w+=|\sstyle=|<style", answer.text)


def test_logins_are_throttled_by_name_also_with_the_right_password(visit):
    client = visit.browser()
    assert [log_in(client, password="wrong").status_code for _ in range(8)] == [401] * 8
    assert log_in(client).status_code == 429
    assert log_in(client, "other").status_code == 303


@pytest.fixture
def slow_passwords(visit):
    """Give the annotator a password whose check takes long enough for others to come while it goes on."""
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(people, "_hasher", PasswordHasher(time_cost=2, memory_cost=8192, parallelism=1))

        def change(session):
            person = session.get_one(StoredPerson, visit.site.people["annotator"])
            people.set_password(session, person, PASSWORD, by=None, at=time.time())

        visit.database.write(change)
        yield


def log_in_at_once(visit, passwords):
    """Log in from as many new browsers as there are passwords, all at once; returns how often each status came."""
    start = threading.Barrier(len(passwords))

    def enter(password):
        start.wait()
        return log_in(visit.browser(), password=password).status_code

    with ThreadPoolExecutor(len(passwords)) as pool:
        return Counter(pool.map(enter, passwords))


@pytest.mark.usefixtures("slow_passwords")
def test_a_class_that_logs_in_at_once_is_let_in(visit):
    assert log_in_at_once(visit, [PASSWORD] * 20) == {303: 20}
    with visit.database.reading() as session:
        assert session.scalars(select(StoredLoginAttempt)).all() == []


@pytest.mark.usefixtures("slow_passwords")
def test_guesses_that_are_sent_at_once_are_throttled(visit):
    assert log_in_at_once(visit, ["wrong"] * 20) == {401: 8, 429: 12}


@pytest.mark.parametrize(("mark", "seconds", "wait"), [("?", -20, 30), ("?", -40, 860), ("", 24 * 3600, None)])
def test_logins_without_a_result_and_of_the_future_close_no_name_for_long(visit, mark, seconds, wait):
    """Eight logins whose process ended before a result was stored, or that failed before the clock was set back."""
    log_in(visit.browser(), password="wrong")

    def change(session):
        row = session.scalars(select(StoredLoginAttempt)).one()
        for _ in range(8):
            session.add(StoredLoginAttempt(name=mark + row.name, address="9.9.9.9", at=time.time() + seconds))
        session.delete(row)

    visit.database.write(change)
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(people, "_LONGEST_TURN", 0.2)
        answer = log_in(visit.browser())
    assert answer.status_code == (303 if wait is None else 429)
    if wait is not None:
        assert wait - 10 < int(answer.headers["retry-after"]) <= wait


def test_others_cannot_lock_a_known_browser_out(visit):
    known, stranger = visit.browser(), visit.browser()
    assert log_in(known).status_code == log_in(known, "other").status_code == 303
    for _ in range(8):
        log_in(stranger, password="wrong")
    for number in range(60):
        log_in(stranger, f"nobody {number}", "wrong")
    # The name and the address are closed, to everybody but the browser that was logged in with the name.
    assert log_in(stranger).status_code == 429
    assert log_in(known, "delivery").status_code == 429
    for name in ("annotator", "other"):
        assert log_in(known, name).status_code == 303, name


def test_a_known_browser_has_a_count_of_its_own(visit):
    known = visit.browser()
    assert log_in(known).status_code == 303
    assert [log_in(known, password="wrong").status_code for _ in range(8)] == [401] * 8
    assert log_in(known).status_code == 429
    assert log_in(visit.browser()).status_code == 303


def test_a_known_browser_changes_its_password_while_others_fail(visit):
    known = visit.browser()
    assert log_in(known).status_code == 303
    for _ in range(8):
        log_in(visit.browser(), password="wrong")
    csrf = re.search(r'name="csrf-token" content="(\w+)"', known.get("/account").text)[1]
    form = {"old": PASSWORD, "new": "another password", "csrf": csrf}
    assert known.post("/account/password", data=form).status_code == 303


def test_a_forged_or_foreign_device_cookie_is_no_known_browser(visit):
    known, other = visit.browser(), visit.browser()
    assert log_in(known).status_code == log_in(other, "other").status_code == 303
    (mine, value), (_, theirs) = (
        next((key, value) for key, value in client.cookies.items() if "device" in key) for client in (known, other)
    )
    for _ in range(8):
        log_in(visit.browser(), password="wrong")
    for forged in (
        "",
        "x",
        f"x{value}",
        value.rpartition(".")[0],
        theirs,
        visit.site.cookies["annotator"],
        "\u00e9.\u00e9",
    ):
        assert log_in(visit.browser(), headers={"cookie": f"{mine}={forged}".encode()}).status_code == 429, forged
    assert log_in(visit.browser(), headers={"cookie": f"{mine}={value}"}).status_code == 303


@pytest.mark.parametrize(
    ("headers", "status"),
    [
        ({}, 303),
        ({"origin": "http://testserver"}, 303),
        ({"origin": "HTTP://TestServer"}, 303),
        ({"origin": "https://elsewhere.example", "sec-fetch-site": "same-origin"}, 303),
        ({"sec-fetch-site": "cross-site"}, 403),
        ({"origin": "http://testserver", "sec-fetch-site": "same-site"}, 403),
        ({"origin": "https://elsewhere.example"}, 403),
        ({"origin": "http://testserver:8080"}, 403),
        ({"origin": "http://testserver.elsewhere.example"}, 403),
        ({"origin": "http://elsewhere.example/testserver"}, 403),
        ({"origin": "http://[::bad"}, 403),
        ({"origin": "null"}, 403),
        ({"origin": ""}, 403),
    ],
)
def test_a_form_of_another_site_reaches_nothing_that_needs_no_session(visit, headers, status):
    changes = [path for method, path in OPEN if method == "POST"]
    assert "/login" in changes
    for path in changes:
        sent = {"name": "annotator", "password": PASSWORD}
        assert visit.browser().post(path, data=sent, headers=headers).status_code == status, path


def test_behind_https_a_page_of_the_same_name_without_it_is_another_site(visit):
    visit.app = application(visit.database, Options(hosts=("testserver",), is_secure=True))
    for origin, status in (("http://testserver", 403), ("https://testserver", 303)):
        assert log_in(visit.browser(), headers={"origin": origin}).status_code == status


def test_an_unknown_name_and_a_wrong_password_look_the_same(visit):
    unknown, wrong = (log_in(visit.browser(), name, "no password").text for name in ("nobody", "other"))
    assert unknown.replace("nobody", "other") == wrong


def test_a_new_password_ends_every_session(visit):
    first, second = visit.browser(), visit.browser()
    assert log_in(first).status_code == log_in(second).status_code == 303
    csrf = re.search(r'name="csrf-token" content="(\w+)"', first.get("/account").text)[1]
    changed = first.post("/account/password", data={"old": PASSWORD, "new": "another password", "csrf": csrf})
    assert changed.status_code == 303
    for client in (first, second, visit.browser("annotator")):
        assert client.get("/account").headers["location"] == "/login"
    assert log_in(visit.browser()).status_code == 401
    assert log_in(visit.browser(), password="another password").status_code == 303


def test_a_wrong_old_password_changes_nothing_and_counts_as_a_failed_login(visit):
    client, form = (
        visit.browser("annotator"),
        {"old": "wrong", "new": "another password", "csrf": visit.csrf("annotator")},
    )
    assert [client.post("/account/password", data=form).status_code for _ in range(8)] == [403] * 8
    assert log_in(visit.browser()).status_code == 429


def test_logging_out_ends_the_session_itself(visit):
    client = visit.browser("annotator")
    assert client.post("/logout", data={"csrf": visit.csrf("annotator")}).status_code == 303
    assert visit.browser("annotator").get("/account").status_code == 303


@pytest.mark.parametrize("act", ["close", "erase"])
def test_a_closed_or_erased_person_is_out_at_once(visit, act):
    number, admin = visit.site.people["other"], visit.browser("administrator")
    path, form = f"/manage/people/{number}", {"role": "annotator"}
    if act == "erase":
        path, form = f"{path}/erase", {"confirmation": "other"}
    num_answers = visit.num_answers()
    assert admin.post(path, data=form | {"csrf": visit.csrf("administrator")}).status_code == 303
    assert visit.browser("other").get("/account").status_code == 303
    assert visit.program(visit.site.tokens["other"]).get("/account").status_code == 303
    assert log_in(visit.browser(), "other").status_code == 401
    assert visit.num_answers() == num_answers > 0
    if act == "erase":
        assert PASSWORD not in (text := admin.get("/manage/people").text)
        assert '<h3 dir="auto">other</h3>' not in text
        assert visit.person(number).name.startswith("erased P-")


def test_an_erased_person_is_not_among_failed_logins(visit):
    assert log_in(visit.browser(), "other", "wrong").status_code == 401
    form = {"confirmation": "other", "csrf": visit.csrf("administrator")}
    path = f"/manage/people/{visit.site.people['other']}/erase"
    assert visit.browser("administrator").post(path, data=form).status_code == 303
    with visit.database.reading() as session:
        assert session.scalars(select(StoredLoginAttempt)).all() == []


def test_a_failed_login_keeps_no_name(visit):
    """Whoever is erased may have typed the name in other letters, or type it once more afterwards."""
    for name in ("other", "OTHER", " Other "):
        assert log_in(visit.browser(), name, "wrong").status_code == 401
    with visit.database.reading() as session:
        kept = [row.name for row in session.scalars(select(StoredLoginAttempt))]
    assert len(kept) == 3
    assert not [name for name in kept if "other" in name.lower()]


def test_erasing_needs_the_name(visit):
    number, form = visit.site.people["other"], {"confirmation": "Other", "csrf": visit.csrf("administrator")}
    assert visit.browser("administrator").post(f"/manage/people/{number}/erase", data=form).status_code == 400
    assert visit.person(number).erased_at is None


def test_the_last_administrator_stays(visit):
    number, form = visit.site.people["administrator"], {"role": "annotator", "csrf": visit.csrf("administrator")}
    refused = visit.browser("administrator").post(f"/manage/people/{number}", data=form)
    assert refused.status_code == 400
    assert "make another one first" in refused.text
    assert visit.person(number).role == "administrator"


def test_requests_are_bounded(visit):
    admin, csrf = visit.browser("administrator"), visit.csrf("administrator")
    small = {"name": "x" * (2 * 2**20), "password": "y"}
    assert visit.browser().post("/login", data=small).status_code == 413
    assert admin.post("/manage/projects", data={"name": "x" * (2 * 2**20), "csrf": csrf}).status_code == 413
    large = b"x" * (64 * 2**20)
    files = {"file": ("x.jsonl", large)}
    path = f"/manage/projects/{visit.site.project}/import"
    refused = admin.post(path, data={"batch": "b", "csrf": csrf}, files=files, headers={"x-csrf-token": csrf})
    assert refused.status_code == 413
    assert "steelyard workbench import" in refused.text
    program = visit.program(visit.site.tokens["administrator"])
    refused = program.post(f"/api/v1/projects/{visit.site.project}/import?batch=b", content=large + b"x")
    assert refused.status_code == 413
    assert refused.json() == {
        "error": "the request is larger than 64 MiB: import a large file on the server: steelyard workbench import"
    }


@pytest.mark.parametrize(
    ("language", "sentence"),
    [("en", "1 MB of text in a field, 64 MB in a file"), ("zh-CN", "一个文本框最多 1 MB，一个文件最多 64 MB")],
)
def test_a_field_that_is_too_long_says_how_long_it_may_be(visit, language, sentence):
    # The parser of forms has a limit of its own, below that of a request.
    for form in ({"data": {"name": "x" * (2**20 + 1)}}, {"files": {"name": (None, "x" * (2**20 + 1))}}):
        refused = visit.browser().post("/login", headers={"accept-language": language}, **form)
        assert refused.status_code == 413
        assert sentence in refused.text
        assert "1024KB" not in refused.text


def test_other_names_of_the_host_are_refused(visit):
    # A name of another site that points here (DNS rebinding).
    assert visit.browser().get("/login", headers={"host": "evil.example"}).status_code == 400
    assert visit.browser().get("/login", headers={"host": "testserver:8000"}).status_code == 200


def test_no_path_leaves_the_folder_of_static_files(visit):
    for path in (
        "/static/../words.toml",
        "/static/%2e%2e/words.toml",
        "/static/..%2fwords.toml",
        "/vendored/../base.html",
    ):
        assert visit.browser().get(path).status_code == 404


def test_pages_of_errors_say_what_is_wrong_and_nothing_else(visit):
    admin, csrf, project = visit.browser("administrator"), visit.csrf("administrator"), visit.site.project
    form = {"csrf": csrf}
    path = f"/manage/projects/{project}"
    form_type = {"content-type": "application/x-www-form-urlencoded"}
    answers = [
        visit.browser().get("/none"),
        visit.browser().post("/login"),
        visit.browser().post("/login", content=b"\xff\x00", headers=form_type),
        admin.get(f"{path}/items?after=x"),
        admin.get(f"{path}/export?evidence=all"),
        admin.get("/manage/audit?number=x"),
        admin.post(f"{path}/settings", data=form | {"rules.gate": "<script>"}),
        admin.post(f"{path}/settings", data=form | {"seed": "[1]"}),
        admin.post(f"{path}/settings", data=form | {"rules.num_annotators": "9" * 30}),
        admin.post(f"{path}/import", data=form | {"batch": "b"}),
        admin.post(f"{path}/import", data=form | {"batch": "b"}, files={"file": ("../../x.jsonl", b'{"a": 1}\n')}),
        admin.post(f"{path}/import", data=form | {"batch": "b"}, files={"file": ("x.exe", b"MZ")}),
        admin.post(f"{path}/import", data=form | {"batch": "b"}, files={"file": ("x.parquet", b"PAR1")}),
        admin.post("/manage/people", data=form | {"name": "a\x00b", "role": "annotator"}),
        admin.post("/manage/people", data=form | {"name": "a", "role": "root"}),
        admin.post("/manage/people", data=form | {"name": "annotator", "role": "annotator"}),
        admin.post("/manage/projects", data=form | {"name": "P"}),
        admin.post(f"{path}/guidelines", data=form | {"text": " "}),
        admin.post(f"{path}/guidelines", data=form | {"text": "x", "language": "tlh"}),
        visit.program(visit.site.tokens["administrator"]).post("/api/v1/projects", content=b"[" * 100_000),
    ]
    for answer in answers:
        assert 400 <= answer.status_code < 500, (answer.request.url, answer.status_code)
        assert not SECRETS.search(answer.text), answer.request.url
        assert "<script>" not in answer.text
    assert "x.jsonl:1" in answers[10].text


def test_texts_of_people_are_text_on_every_page(visit):
    admin, csrf = visit.browser("administrator"), visit.csrf("administrator")
    hostile = "<img src=x onerror=alert(1)>"
    for path, form in (
        ("/manage/projects", {"name": hostile}),
        ("/manage/people", {"name": hostile, "role": "annotator", "skills": hostile, "display_name": hostile}),
        ("/manage/projects/1/guidelines", {"text": hostile, "category": hostile}),
        ("/manage/projects/1/guidelines", {"text": f"# {hostile} [x](javascript:alert)", "step": "preview"}),
    ):
        answer = admin.post(path, data=form | {"csrf": csrf}, follow_redirects=True)
        assert answer.status_code == 200, path
        assert "<img src=x" not in answer.text
        assert 'href="javascript' not in answer.text
    for path in ("/manage", "/manage/people", "/manage/audit", "/manage/projects/1/guidelines?version=1"):
        assert "<img src=x" not in admin.get(path).text


@pytest.mark.parametrize(
    ("referer", "link"),
    [
        ("http://testserver/manage?x=1", "/manage?x=1"),
        ("http://testserver//manage", "/manage"),
        ("http://testserver//elsewhere.example", None),
        ("http://elsewhere.example/manage", None),
        ("http://[", None),
        ("http://testserver/nothing", None),
    ],
)
def test_an_error_leads_back_to_the_page_before_and_nowhere_else(visit, referer, link):
    page = visit.browser("administrator").get("/nothing", headers={"referer": referer}).text
    links = [target for target in re.findall(r'<p><a href="([^"]+)"', page) if target != "/"]
    assert links == ([] if link is None else [link])


@pytest.mark.parametrize(
    ("method", "path", "referer"),
    [
        ("GET", "/manage/projects/1/import", None),
        ("POST", "/manage/projects/1/import", "http://testserver/manage/projects/1/import"),
        ("POST", "/manage/projects/1/settings", "http://testserver/manage/projects/1/import"),
    ],
)
def test_an_error_at_the_address_of_a_form_leads_back_to_the_page_with_the_form(visit, method, path, referer):
    headers = {"referer": referer} if referer else {}
    page = visit.browser("administrator").request(method, path, headers=headers)
    assert page.status_code >= 400, "the request was carried out"
    assert '<a href="/manage/projects/1">Back to the page before</a>' in page.text, page.text
