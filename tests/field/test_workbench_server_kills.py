"""The server killed while a file is sent to it, and while it sends one: all of an import or nothing, no cut export."""

import http.client
import random
import sys
import tempfile
import threading
import time
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from urllib.parse import urlsplit

import msgspec
import pytest
from sqlalchemy import func, select, update

from steelyard.workbench.accounts.api_tokens import issue_token
from steelyard.workbench.accounts.people import NewPerson, add_person
from steelyard.workbench.pipeline.case_import import import_cases
from steelyard.workbench.pipeline.projects import ProjectSettings, add_project
from steelyard.workbench.storage.audit_log import verify
from steelyard.workbench.storage.database import Database
from steelyard.workbench.storage.tables import StoredItem, StoredTask
from workbench_clients import KillableServer
from workbench_people import NO_GOLD, NOON, cases
from workbench_site import case_lines

pytestmark = pytest.mark.field
NUM_KILLS, NUM_CASES = 20, 150
SEED = 17


def populated(address):
    """A workbench with an administrator and a project of finished items; returns it and the token."""
    database = Database(address)
    database.migrate()

    def make(session):
        root = add_person(session, NewPerson("root", "administrator"), by=None, at=NOON)
        project = add_project(session, "P", ProjectSettings(rules=NO_GOLD), by=None, at=NOON)
        import_cases(session, project, cases(300, first=9000), batch="done", by=None, at=NOON)
        session.execute(update(StoredItem).values(state="finished"))
        return issue_token(session, root, "t", at=time.time())

    return database, database.write(make)


def form(content, batch):
    """The body of the page's form, and its kind."""
    mark = "a-boundary"
    parts = [
        f'--{mark}\r\ncontent-disposition: form-data; name="batch"\r\n\r\n{batch}\r\n'.encode(),
        f'--{mark}\r\ncontent-disposition: form-data; name="file"; filename="c.jsonl"\r\n\r\n'.encode() + content,
        f"\r\n--{mark}--\r\n".encode(),
    ]
    return b"".join(parts), f"multipart/form-data; boundary={mark}"


class Sending(threading.Thread):
    """Sends the form of an import in small pieces; ``status`` is that of the answer, null without one."""

    def __init__(self, url, token, batch, content):
        super().__init__(daemon=True)
        self.url, self.token, self.batch, self.content = url, token, batch, content
        self.status, self.text = None, ""

    def run(self):
        body, kind = form(self.content, self.batch)
        connection = http.client.HTTPConnection(urlsplit(self.url).netloc, timeout=300)
        try:
            connection.putrequest("POST", "/manage/projects/1/import")
            for name, value in (
                ("Authorization", f"Bearer {self.token}"), ("Content-Type", kind), ("Content-Length", str(len(body))),
            ):  # fmt: skip
                connection.putheader(name, value)
            connection.endheaders()
            for start in range(0, len(body), 2**14):
                connection.send(body[start : start + 2**14])
            reply = connection.getresponse()
            self.status, self.text = reply.status, reply.read().decode()
        except (OSError, http.client.HTTPException):
            pass
        finally:
            connection.close()


def num_items(database, batch):
    with database.reading() as session:
        assert verify(session) is None
        items = session.scalars(select(StoredItem.id).where(StoredItem.batch == batch)).all()
        tasks = session.scalar(select(func.count()).select_from(StoredTask).where(StoredTask.item_id.in_(items)))
    assert tasks == len(items)
    return len(items)


def test_an_upload_is_whole_or_not_there_when_the_server_is_killed(address):
    database, token = populated(address)
    draw, num_cut = random.Random(SEED), 0
    with KillableServer(address) as server:
        started = time.monotonic()
        first = Sending(server.url, token, "first", case_lines(NUM_CASES, first=10**5))
        first.run()
        seconds = time.monotonic() - started
        assert first.status == 200, first.text[-500:]
        for number in range(NUM_KILLS):
            batch = f"batch {number}"
            content = case_lines(NUM_CASES, first=NUM_CASES * number)
            sending = Sending(server.url, token, batch, content)
            sending.start()
            time.sleep(draw.uniform(0, seconds))
            server.restart()
            sending.join()
            stored = num_items(database, batch)
            assert stored in (0, NUM_CASES)
            # Who was told that it is there finds it.
            assert sending.status is None or stored == NUM_CASES
            num_cut += sending.status is None
            again = Sending(server.url, token, batch, content)
            again.run()
            assert again.status == (400 if stored else 200), again.text[-500:]
            assert ("is imported already" in again.text) == bool(stored)
            assert num_items(database, batch) == NUM_CASES
    assert list(Path(tempfile.gettempdir()).glob(".steelyard-upload-*")) == []
    database.close()
    sys.stdout.write(f"{num_cut} of {NUM_KILLS} kills within an upload of {seconds:.1f} s\n")


def export(url, token):
    """Read an export; returns what came, and whether it was cut off."""
    connection = http.client.HTTPConnection(urlsplit(url).netloc, timeout=300)
    received = b""
    try:
        connection.request("GET", "/api/v1/projects/1/export", headers={"Authorization": f"Bearer {token}"})
        reply = connection.getresponse()
        assert reply.status == 200
        while piece := reply.read1(2**12):
            received += piece
            time.sleep(0.002)
    except (OSError, http.client.HTTPException):
        return received, True
    finally:
        connection.close()
    return received, False


def test_an_export_that_is_cut_off_is_known_to_be(address):
    database, token = populated(address)
    draw, num_cut = random.Random(SEED), 0
    with KillableServer(address) as server:
        started = time.monotonic()
        whole, is_cut = export(server.url, token)
        seconds = time.monotonic() - started
        assert not is_cut
        assert len([msgspec.json.decode(line) for line in whole.splitlines()]) == 300
        for _ in range(NUM_KILLS):
            with ThreadPoolExecutor(1) as reader:
                reading = reader.submit(export, server.url, token)
                time.sleep(draw.uniform(0, seconds))
                server.restart()
                received, is_cut = reading.result()
            # A client is never told that a part is the whole.
            assert is_cut or received == whole
            assert whole.startswith(received)
            num_cut += is_cut
            again, is_cut = export(server.url, token)
            assert (again, is_cut) == (whole, False)
        with database.reading() as session:
            assert verify(session) is None
    database.close()
    sys.stdout.write(f"{num_cut} of {NUM_KILLS} kills within an export of {seconds:.1f} s\n")
