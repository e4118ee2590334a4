"""Hundreds of requests drawn from the description of the interface, as each role, on both systems: no fault."""

import sys
from collections import Counter

import hypothesis
import pytest

from postgres_server import postgres_serving, run_statement
from steelyard.workbench.storage.database import Database
from steelyard.workbench.storage.tables import WorkbenchTable
from workbench_site import SECRETS, Visit, copy_rows, make_site

schemathesis = pytest.importorskip("schemathesis")
pytestmark = [pytest.mark.field, pytest.mark.filterwarnings("ignore")]
NUM_EXAMPLES = {"administrator": 200, "researcher": 40, "annotator": 10}
"""Requests for each operation and manner by whose token is sent: who may do everything, read all, and do nothing."""


@pytest.fixture(scope="module", params=["sqlite", "postgresql"])
def visit(request, tmp_path_factory):
    """The populated workbench on each of the two systems."""
    path = tmp_path_factory.mktemp("site") / "site.db"
    site = make_site(f"sqlite:///{path}")
    source = Database(f"sqlite:///{path}")
    if request.param == "sqlite":
        yield Visit(source, site)
        return
    with postgres_serving() as server:
        run_statement(server.format(name="postgres"), "CREATE DATABASE site")
        target = Database(server.format(name="site"))
        target.migrate()
        copy_rows(source, target)
        with target.engine.begin() as connection:
            for table in WorkbenchTable.metadata.sorted_tables:
                counter = f"pg_get_serial_sequence('{table.name}', 'id')"
                connection.exec_driver_sql(f"SELECT setval({counter}, COALESCE(MAX(id), 1)) FROM {table.name}")
            key = [dict(row) for row in source.engine.connect().exec_driver_sql("SELECT * FROM keys").mappings()]
            assert key
        yield Visit(target, site)
        target.close()


def operations(visit):
    schema = schemathesis.openapi.from_asgi("/api/openapi.json", visit.app, headers={"host": "testserver"})
    return [result.ok() for result in schema.get_all_operations()]


def drawn(strategy, send, number):
    """Send requests of a strategy, others in every run."""
    checks = list(hypothesis.HealthCheck)
    settings = hypothesis.settings(
        max_examples=number, deadline=None, database=None, suppress_health_check=checks, print_blob=True
    )
    settings(hypothesis.given(case=strategy)(send))()


@pytest.mark.parametrize("role", NUM_EXAMPLES)
def test_no_request_ends_in_a_fault(visit, role):
    schemathesis.serializer("application/x-ndjson")(
        lambda _, value: value if isinstance(value, bytes) else str(value).encode(errors="replace")
    )
    headers = {"Authorization": f"Bearer {visit.site.tokens[role]}", "host": "testserver"}
    statuses = Counter()

    def send(case):
        answer = case.call(headers=headers)
        statuses[answer.status_code] += 1
        assert answer.status_code < 500, case.as_curl_command()
        if answer.status_code >= 400:
            assert answer.headers["content-type"] == ["application/json"], case.as_curl_command()
            assert not SECRETS.search(answer.text), case.as_curl_command()

    def send_to_the_project(case):
        case.path_parameters["project"] = visit.site.project
        send(case)

    modes = schemathesis.GenerationMode
    every, number = operations(visit), NUM_EXAMPLES[role]
    for operation in every:
        drawn(operation.as_strategy(generation_mode=modes.POSITIVE), send, number)
        if operation.path_parameters:
            drawn(operation.as_strategy(generation_mode=modes.POSITIVE), send_to_the_project, number)
        if operation.body or operation.path_parameters:
            drawn(operation.as_strategy(generation_mode=modes.NEGATIVE), send, number)
    sys.stdout.write(f"{role}: {len(every)} operations, requests by status {dict(sorted(statuses.items()))}\n")
    # Who may do nothing here is refused whatever is sent; 400 is a body that is no JSON.
    assert (statuses.keys() <= {400, 401, 403, 404, 405, 413}) == (role == "annotator")
