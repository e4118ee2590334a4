"""The workbench behind nginx as the how-to configures it: HTTPS, cookies, addresses of clients, sizes of uploads."""

import http.client
import re
import shutil
import socket
import ssl
import subprocess
import time
from pathlib import Path
from urllib.parse import urlencode

import pytest

from browser_tab import Tab
from steelyard.workbench.accounts.people import NewPerson, add_person
from steelyard.workbench.storage.database import Database
from workbench_clients import KillableServer
from workbench_server import PASSWORD
from workbench_site import case_lines

pytestmark = [
    pytest.mark.field,
    pytest.mark.skipif(not shutil.which("nginx") or not shutil.which("openssl"), reason="nginx is not installed"),
]
HOW_TO = Path(__file__).parents[2] / "docs" / "howto" / "workbench.md"
NAME = "label.example.org"
MOST_FAILURES = 60
"""What the how-to says of failed logins from an address."""
# Only where files lie: nginx in a test has no folders of its own.
MAIN = """
pid {folder}/pid;
error_log {folder}/error.log;
events {{}}
http {{
    access_log off;
    client_body_temp_path {folder}/body; proxy_temp_path {folder}/proxy; fastcgi_temp_path {folder}/fastcgi;
    uwsgi_temp_path {folder}/uwsgi; scgi_temp_path {folder}/scgi;
    {server}
}}
"""


@pytest.fixture(scope="module")
def port(tmp_path_factory):
    """The port of nginx before a workbench, with the configuration of the how-to."""
    folder = tmp_path_factory.mktemp("nginx")
    address = f"sqlite:///{folder}/workbench.db"
    database = Database(address)
    database.migrate()
    database.write(lambda session: add_person(session, NewPerson("ada", "administrator", PASSWORD), by=None, at=0.0))
    database.close()
    certificate = ["openssl", "req", "-x509", "-newkey", "rsa:2048", "-nodes", "-days", "2", "-subj", f"/CN={NAME}"]
    certificate += ["-addext", f"subjectAltName=DNS:{NAME}"]
    subprocess.run([*certificate, "-keyout", folder / "label.key", "-out", folder / "label.pem"], check=True)
    with socket.socket() as free:
        free.bind(("127.0.0.1", 0))
        number = free.getsockname()[1]
    with KillableServer(address, "--behind-https", "--public-name", NAME) as server:
        (block,) = re.findall(r"```nginx\n(.*?)```", HOW_TO.read_text(encoding="utf-8"), flags=re.DOTALL)
        places = {
            "443": f"127.0.0.1:{number}",
            "/etc/ssl/": f"{folder}/",
            "http://127.0.0.1:8766": server.url.removesuffix("/"),
        }
        for written, there in places.items():
            assert written in block
            block = block.replace(written, there)
        (folder / "nginx.conf").write_text(MAIN.format(folder=folder, server=block))
        command = ["nginx", "-c", folder / "nginx.conf", "-g", "daemon off; master_process off;"]
        with subprocess.Popen(command, stderr=subprocess.DEVNULL) as nginx:
            wait_for(number)
            yield number
            nginx.terminate()


def wait_for(port):
    end = time.monotonic() + 60
    while True:
        try:
            socket.create_connection(("127.0.0.1", port), 1).close()
        except OSError:
            assert time.monotonic() < end, "nginx does not start"
            time.sleep(0.05)
        else:
            return


def request(port, method, path, *, source="127.0.0.1", body=None, headers=()):
    """Send a request from an address of this machine; returns status, headers and text."""
    trusting = ssl._create_unverified_context()
    connection = http.client.HTTPSConnection("127.0.0.1", port, context=trusting, source_address=(source, 0))
    connection.request(method, path, body, {"host": NAME, **dict(headers)})
    reply = connection.getresponse()
    text = reply.read().decode(errors="replace")
    connection.close()
    return reply.status, reply.headers, text


def log_in(port, name="ada", password=PASSWORD, **more):
    form = {"content-type": "application/x-www-form-urlencoded", **more.pop("headers", {})}
    return request(port, "POST", "/login", body=urlencode({"name": name, "password": password}), headers=form, **more)


def test_a_person_logs_in_with_a_browser_and_stays(port, tmp_path):
    flags = [f"--host-resolver-rules=MAP {NAME} 127.0.0.1", "--ignore-certificate-errors"]
    origin = f"https://{NAME}:{port}"
    with Tab(tmp_path, flags=flags) as tab:
        tab.open(f"{origin}/manage")
        assert tab.value("location.pathname") == "/login"
        tab.value("document.querySelector('[name=name]').focus()")
        tab.type("ada")
        tab.value("document.querySelector('[name=password]').focus()")
        tab.type(PASSWORD)
        tab.press("Enter")
        tab.wait("location.pathname !== '/login' && document.readyState === 'complete'")
        tab.open(f"{origin}/manage")
        assert tab.value("location.href") == f"{origin}/manage"
        # No script reads the cookie, and nothing was refused by the page's own policy.
        assert tab.value("document.cookie") == ""
        assert tab.complaints == []


def test_cookies_and_headers_are_those_of_https(port):
    status, headers, _ = log_in(port)
    assert status == 303
    assert headers["location"].startswith("/")
    assert set(headers["set-cookie"].lower().split("; ")) >= {"secure", "httponly", "samesite=strict", "path=/"}
    assert headers["strict-transport-security"]
    # Another name that points here is refused (DNS rebinding).
    assert request(port, "GET", "/login", headers={"host": "evil.example"})[0] in (400, 421)


def test_failed_logins_count_by_the_address_behind_the_proxy(port):
    # The client's own word for where it is does not count.
    for number in range(MOST_FAILURES):
        forged = {"x-forwarded-for": f"192.0.2.{number}"}
        assert log_in(port, f"nobody {number}", "wrong password", source="127.0.0.2", headers=forged)[0] != 429
    assert log_in(port, source="127.0.0.2")[0] == 429
    assert log_in(port, source="127.0.0.3")[0] == 303


def test_uploads_pass_up_to_the_limit_of_the_workbench(port):
    cookie = log_in(port)[1]["set-cookie"].partition(";")[0]
    page = request(port, "GET", "/manage", headers={"cookie": cookie})[2]
    token = re.search(r'name="csrf-token" content="(\w+)"', page)[1]
    headers = {
        "cookie": cookie,
        "x-csrf-token": token,
        "content-type": "application/json",
        "accept": "application/json",
    }
    made = request(port, "POST", "/api/v1/projects", body='{"name": "p"}', headers=headers)
    assert made[0] == 201, made
    lines = case_lines(2) + b" " * (3 * 2**20) + b"\n"
    path = "/api/v1/projects/1/import?batch=b"
    assert request(port, "POST", path, body=lines, headers=headers)[0] == 201
    assert request(port, "POST", path, body=b"x" * (65 * 2**20), headers=headers)[0] == 413
