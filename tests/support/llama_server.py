"""A real llama.cpp server in a process of its own, as a client of the tool meets it.

``python llama_server.py MODEL '{"slots": 2}'`` prints the server's address and serves until its input ends, so that no
test, however it ends, leaves one behind. In a test: ``with llama_serving(model) as url``.
"""

import json
import os
import subprocess
import sys
from contextlib import contextmanager
from pathlib import Path

ALIAS = "tiny"


@contextmanager
def llama_serving(model, *, slots=2, context=8192, key=None):
    """Serve a GGUF file at a free port; yields the address up to /v1. Each slot has its share of the context."""
    settings = json.dumps({"slots": slots, "context": context, "key": key})
    with subprocess.Popen(
        [sys.executable, __file__, str(model), settings],
        stdin=subprocess.PIPE,
        stdout=subprocess.PIPE,
        stderr=subprocess.DEVNULL,
        text=True,
    ) as server:
        try:
            # The libraries may write lines of their own before it.
            address = next((line for line in server.stdout if line.startswith("http://")), None)
            assert address is not None, f"the server did not start (exit code {server.wait()})"
            yield f"{address.strip()}/v1"
        finally:
            server.kill()


def _serve(model, slots, context, key):
    import xllamacpp

    params = xllamacpp.CommonParams()
    params.model.path = model
    params.model_alias = {ALIAS}
    params.port = 0
    params.n_parallel, params.n_ctx = slots, context
    # Threads beyond the first spin while they wait for one another, on machines with other work for minutes.
    params.cpuparams.n_threads = params.cpuparams_batch.n_threads = 1
    params.warmup = False
    if key is not None:
        params.api_keys = [key]
    server = xllamacpp.Server(params)
    sys.stdout.write(f"{server.listening_address}\n")
    sys.stdout.flush()
    sys.stdin.read()
    # The server's threads would be joined, those of requests under way among them.
    os._exit(0)


if __name__ == "__main__":
    _serve(str(Path(sys.argv[1])), **json.loads(sys.argv[2]))
