"""A batch service: answers files of requests line by line through a chat server, as OpenAI and vLLM write results."""

import json
from http.client import HTTPConnection
from urllib.parse import urlsplit


def requests_in(folder):
    """The requests of every batch file without results in a folder, by file; no id is in two lines."""
    written = sorted(folder.glob("batch-*.jsonl"))
    paths = [path for path in written if not path.name.endswith((".output.jsonl", ".errors.jsonl"))]
    files = {
        path.name: [json.loads(line) for line in path.read_bytes().split(b"\n")[:-1]]
        for path in paths
        if not any(file.exists() for file in results_of(path))
    }
    ids = [line["custom_id"] for lines in files.values() for line in lines]
    assert len(set(ids)) == len(ids)
    return files


def results_of(path):
    """The names of the output and error files of a batch file."""
    return [path.with_suffix(suffix) for suffix in (".output.jsonl", ".errors.jsonl")]


def post(url, body):
    """Send a body to a server, and return the status and the decoded response."""
    address = urlsplit(url)
    connection = HTTPConnection(address.netloc)
    headers = {"Content-Type": "application/json"}
    connection.request("POST", f"{address.path}/chat/completions", json.dumps(body).encode(), headers)
    response = connection.getresponse()
    content = response.read()
    connection.close()
    try:
        return response.status, json.loads(content)
    except ValueError:
        return response.status, {"error": {"message": content.decode()}}


def result(request, status, body):
    return {
        "id": f"batch_req_{request['custom_id']}", "custom_id": request["custom_id"],
        "response": {"status_code": status, "request_id": "x", "body": body}, "error": None,
    }  # fmt: skip


def expired(request):
    error = {"code": "batch_expired", "message": "This request could not be executed before the window ended."}
    return {
        "id": f"batch_req_{request['custom_id']}",
        "custom_id": request["custom_id"],
        "response": None,
        "error": error,
    }


def failed_by_vllm(request):
    """A failure as vLLM writes it: a status without a body, and the words under ``error``."""
    return {"id": "vllm-1", "custom_id": request["custom_id"], "response": {"status_code": 400, "request_id": "x"},
            "error": {"message": "too long", "type": "BadRequestError", "code": 400}}  # fmt: skip


def write_results(path, results):
    path.write_text("".join(json.dumps(one, ensure_ascii=False) + "\n" for one in results), encoding="utf-8")


def answer_batches(folder, server, *, fails=lambda request: None):
    """Answer every file that has no results; ``fails`` returns the failed result of a request, or null."""
    for name, requests in requests_in(folder).items():
        output, errors = results_of(folder / name)
        done, failed = [], []
        for request in reversed(requests):  # results come in any order
            failure = fails(request)
            if failure is not None:
                failed.append(failure)
                continue
            assert request["method"] == "POST"
            assert request["url"] == "/v1/chat/completions"
            status, body = post(server.url, request["body"])
            (done if status == 200 else failed).append(result(request, status, body))
        for path, results in ((output, done), (errors, failed)):
            if results:
                write_results(path, results)
