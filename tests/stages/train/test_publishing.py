import base64
import json
import threading
from contextlib import contextmanager
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer

import pytest
from huggingface_hub import constants

import steelyard as sy
import tiny
from steelyard.core.errors import ConfigError, ModelError
from steelyard.core.types import Case, Response
from steelyard.io.cases import write_cases
from steelyard.plugins.reward_models import build_model, choose_model
from steelyard.stages.train import Config, train
from strategies import case

CONFIG = Config(epochs=1, preflight=False)


class Hub:
    """The repositories of a hub: which are private, and their files."""

    def __init__(self):
        self.private = {}
        self.files = {}
        self.tokens = set()
        self.refuses = set()


@contextmanager
def serving_hub():
    """Serve the part of the hub's interface that creates repositories and commits small files."""
    hub = Hub()

    class Handler(BaseHTTPRequestHandler):
        def do_POST(self):
            body = self.rfile.read(int(self.headers["Content-Length"])).decode()
            hub.tokens.add(self.headers.get("Authorization"))
            if any(word in self.path for word in hub.refuses):
                self.answer({"error": "You don't have the rights"}, 403)
            elif self.path == "/api/repos/create":
                asked = json.loads(body)
                name = f"{asked['organization']}/{asked['name']}" if asked.get("organization") else asked["name"]
                status = 409 if name in hub.private else 200
                hub.private.setdefault(name, asked.get("private", asked.get("visibility") == "private"))
                self.answer({"url": f"{self.server.url}/{name}"}, status)
            elif "/preupload/" in self.path:
                files = json.loads(body)["files"]
                kept = [{"path": one["path"], "uploadMode": "regular", "shouldIgnore": False} for one in files]
                self.answer({"files": kept})
            elif self.path == "/api/validate-yaml":
                self.answer({"errors": [], "warnings": []})
            else:
                name = self.path.removeprefix("/api/models/").split("/commit/")[0]
                lines = [json.loads(line) for line in body.splitlines()]
                for file in (line["value"] for line in lines if line["key"] == "file"):
                    hub.files.setdefault(name, {})[file["path"]] = base64.b64decode(file["content"])
                url = f"{self.server.url}/{name}/commit/{'0' * 40}"
                self.answer({"success": True, "commitOid": "0" * 40, "commitUrl": url, "hookOutput": ""})

        def do_GET(self):
            name = self.path.removeprefix("/api/models/").split("/revision/")[0]
            found = {"id": name, "modelId": name, "sha": "0" * 40, "siblings": [], "tags": [], "private": True}
            self.answer(found | {"downloads": 0, "likes": 0}, 200 if name in hub.private else 404)

        def answer(self, value, status=200):
            body = json.dumps(value).encode()
            self.send_response(status)
            self.send_header("Content-Type", "application/json")
            self.send_header("Content-Length", str(len(body)))
            self.end_headers()
            self.wfile.write(body)

        def log_message(self, format, *args):
            pass

    server = ThreadingHTTPServer(("127.0.0.1", 0), Handler)
    server.url = hub.url = f"http://127.0.0.1:{server.server_port}"
    thread = threading.Thread(target=server.serve_forever, args=(0.05,))
    thread.start()
    try:
        yield hub
    finally:
        server.shutdown()
        thread.join()
        server.server_close()


@pytest.fixture
def hub(monkeypatch):
    for name in ("HTTP_PROXY", "HTTPS_PROXY", "ALL_PROXY", "http_proxy", "https_proxy", "all_proxy"):
        monkeypatch.delenv(name, raising=False)
    monkeypatch.setenv("HF_TOKEN", "hf_of_a_test")
    with serving_hub() as served:
        monkeypatch.setattr(constants, "ENDPOINT", served.url)
        yield served


@pytest.fixture
def given(tmp_path):
    responses = (Response(id="g", text="好的"), Response(id="b", text="לא"))
    cases = [
        Case(prompt=case(id=f"p{index}", text=f"q {index}").prompt, responses=responses, ranking=(("g",), ("b",)))
        for index in range(4)
    ]
    write_cases(tmp_path / "train.jsonl", cases)
    return tmp_path / "train.jsonl", tiny.save_base(tmp_path / "base")


def test_a_trained_model_is_uploaded_and_scores_as_the_folder_does(hub, given, tmp_path):
    file, base = given
    train(file, tmp_path / "out", CONFIG, model=base, push_to_hub="owner/reward")
    assert hub.private == {"owner/reward": True}
    assert hub.tokens == {"Bearer hf_of_a_test"}
    files = hub.files["owner/reward"]
    assert "run.json" not in files, "it has the paths of the machine"
    assert str(tmp_path).encode() not in b"".join(files.values())
    for name, content in files.items():
        (tmp_path / "fetched").mkdir(exist_ok=True)
        (tmp_path / "fetched" / name).write_bytes(content)
    one = Case(prompt=case().prompt, responses=(Response(id="r", text="नमस्ते"),))
    scores = [list(build_model(choose_model(str(tmp_path / name))).score([one])) for name in ("out", "fetched")]
    assert scores[0] == scores[1]


def test_a_finished_model_is_uploaded_without_training_again(hub, given, tmp_path):
    file, base = given
    run = train(file, tmp_path / "out", CONFIG, model=base)
    again = train(file, tmp_path / "out", CONFIG, model=base, push_to_hub="owner/reward", public=True)
    assert again == run
    assert hub.private == {"owner/reward": False}
    assert "model.safetensors" in hub.files["owner/reward"]


def test_a_refusal_comes_before_the_training(hub, given, tmp_path):
    file, base = given
    hub.refuses.add("create")
    with pytest.raises(ModelError, match=r"owner/reward: the hub refuses \(403\)") as raised:
        train(file, tmp_path / "out", CONFIG, model=base, push_to_hub="owner/reward")
    assert "hf auth login" in str(raised.value.do)
    assert not (tmp_path / "out" / "model.safetensors").exists()
    with pytest.raises(ConfigError, match="OWNER/NAME"):
        train(file, tmp_path / "out", CONFIG, model=base, push_to_hub="reward")


def test_a_refused_upload_leaves_the_model(hub, given, tmp_path):
    file, base = given
    hub.refuses.add("commit")
    with pytest.raises(ModelError, match="a trained model stays"):
        train(file, tmp_path / "out", CONFIG, model=base, push_to_hub="owner/reward")
    assert (tmp_path / "out" / "run.json").is_file()
    hub.refuses.clear()
    train(file, tmp_path / "out", CONFIG, model=base, push_to_hub="owner/reward")
    assert "model.safetensors" in hub.files["owner/reward"]


def test_without_a_hub_nothing_is_trained(given, tmp_path, monkeypatch):
    file, base = given
    monkeypatch.setattr(constants, "ENDPOINT", "http://127.0.0.1:9")
    monkeypatch.setenv("HF_TOKEN", "hf_of_a_test")
    with pytest.raises(ModelError, match="cannot be reached"):
        train(file, tmp_path / "out", CONFIG, model=base, push_to_hub="owner/reward")


def test_python_uploads_what_it_trained(hub, given, tmp_path):
    file, base = given
    trained = sy.train(file, model=base, epochs=1, preflight=False, push_to_hub="owner/reward", public=True)
    assert hub.private == {"owner/reward": False}
    assert hub.files["owner/reward"]["model.safetensors"] == (trained.folder / "model.safetensors").read_bytes()
    hub.refuses.add("create")
    with pytest.raises(ModelError, match=r"the hub refuses \(403\)"):
        sy.train(file, model=base, epochs=1, preflight=False, push_to_hub="owner/other")
