"""Settings of every test process: one thread for each numeric library, forty examples for each property, Ctrl-C heard.

The tests run in as many processes as there are cores. A second thread in each waits at barriers for a core that is
busy: the tests of packed attention take 3.4 times the CPU time and ten times as long then. The examples of a property
are the same in every run, so that a failure belongs to the change it meets; `make properties` looks for new ones. No
property fails because the machine is busy: Hypothesis's limits on the time of an example, and of drawing it, are off.
"""

import gc
import os
import signal

import pytest
from hypothesis import HealthCheck, settings

for name in ("OMP_NUM_THREADS", "OPENBLAS_NUM_THREADS", "MKL_NUM_THREADS", "NUMBA_NUM_THREADS"):
    os.environ.setdefault(name, "1")
# Uploads to the hub of the tests would write logs to the home folder.
os.environ.setdefault("HF_HUB_DISABLE_XET", "1")
if signal.getsignal(signal.SIGINT) is signal.SIG_IGN:
    # A shell without job control starts background commands deaf to Ctrl-C, and their processes inherit that.
    signal.signal(signal.SIGINT, signal.default_int_handler)
for profile, choices in {"suite": {"derandomize": True}, "search": {"max_examples": 400}}.items():
    settings.register_profile(
        profile, **{"max_examples": 40, "deadline": None, "suppress_health_check": [HealthCheck.too_slow]} | choices
    )
settings.load_profile("suite")
_LONG_FILES = (
    "contracts/test_gpu_twin.py", "workbench/test_kills.py", "workbench/test_walks.py",
    "workbench/test_hard_items.py", "workbench/test_annotate_windows.py", "workbench/test_annotate_page.py",
    "workbench/test_canaries.py", "workbench/test_rest.py", "networks/test_pack_attention.py",
    "networks/test_invariance.py", "stages/test_batch_runs.py", "stages/test_llama_server.py",
    "cli/verbs/test_view.py", "recipes/test_labelling.py", "contracts/test_torchrun.py",
    "training/test_distributed.py", "training/test_processes.py", "contracts/test_remedies.py",
    "contracts/test_help.py", "contracts/test_formats.py", "contracts/test_models.py", "workbench/test_routes.py",
    "workbench/test_simulated_kinds.py", "workbench/test_kinds_page.py",
)  # fmt: skip
"""Files that take longest in either run: begun last, one would keep a process busy while the others are idle."""


@pytest.hookimpl(wrapper=True)
def pytest_collection():
    """Look for no garbage among modules and tests: all of them stay, and each search reads them anew."""
    gc.disable()
    try:
        return (yield)
    finally:
        gc.freeze()
        gc.enable()


@pytest.hookimpl(trylast=True)
def pytest_collection_modifyitems(items):
    """Begin with the files that take longest. `--no-loadscope-reorder` keeps the order among processes."""
    items.sort(key=lambda item: not item.path.as_posix().endswith(_LONG_FILES))


@pytest.fixture(scope="session")
def tiny_gguf(tmp_path_factory):
    """A tiny model as a GGUF file; tests skip where llama.cpp is not installed."""
    pytest.importorskip("xllamacpp", reason="xllamacpp, a llama.cpp server, is not installed", exc_type=ImportError)
    from tiny_gguf import write_tiny_model

    return write_tiny_model(tmp_path_factory.mktemp("gguf") / "tiny.gguf")


@pytest.fixture(scope="session")
def llama(tiny_gguf):
    """The address, up to /v1, of a llama.cpp server with the tiny model."""
    from llama_server import llama_serving

    with llama_serving(tiny_gguf) as url:
        yield url
