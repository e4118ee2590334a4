"""A Python process that has imported torch and transformers already; tests fork the processes that they need from it.

Importing both takes five CPU seconds and a fork a hundredth of one. ``Process`` takes the words of a Python command
line (``-c CODE``, ``-m MODULE`` or a script, and its arguments), and the fork runs them as ``__main__``, in a session
of its own as under a shell's job control. Its memory, time, signals and exit code are its own: a hang, a crash or an
exhausted memory is the result of that command line and of no other. Variables that libraries read while they are
imported are those of the test process.
"""

import atexit
import contextlib
import gc
import importlib
import json
import os
import pkgutil
import resource
import runpy
import select
import signal
import socket
import socketserver
import subprocess
import sys
import tempfile
import threading
from pathlib import Path
from typing import NamedTuple

IMPORTS = ("torch.distributed.tensor", "steelyard.stages.train", "steelyard.stages.evaluate", "steelyard.cli.main")
MEMORY = 3 * 2**30
"""Bytes of private memory that a command line of the tool may take beyond those of the process it is forked from."""


class Ended(NamedTuple):
    returncode: int
    stdout: str
    stderr: str


class Process:
    """A fork that runs; ``pid`` is its number in the system.

    ``memory`` bounds the bytes that it may take beyond those of the process it is forked from. With ``all_imported``
    that one has imported every module of the package, so that a signal falls into the work and not into imports.
    """

    def __init__(self, words, *, env=None, cwd=None, memory=None, all_imported=False):
        self._folder = tempfile.TemporaryDirectory()
        self._streams = [Path(self._folder.name, name) for name in ("stdout", "stderr")]
        for stream in self._streams:
            stream.touch()  # a process may be killed before it opens them
        self._socket = socket.socket(socket.AF_UNIX)
        self._socket.connect(_address(all_imported))
        # Unbuffered: an end that was read together with the number would be one that select never tells.
        self._answers = self._socket.makefile("rb", buffering=0)
        request = {
            "words": [str(word) for word in words],
            "environment": dict(os.environ if env is None else env),
            "folder": str(cwd or Path.cwd()),
            "streams": [str(stream) for stream in self._streams],
            "memory": memory,
        }
        self._socket.sendall(json.dumps(request).encode() + b"\n")
        self.pid = int(self._answers.readline())

    def ends_within(self, seconds):
        """Wait so long for its end. Returns whether it has ended."""
        return bool(select.select([self._socket], [], [], seconds)[0])

    def stderr(self):
        """Return what it has written to stderr so far."""
        return self._streams[1].read_text(encoding="utf-8", errors="replace")

    def kill(self, number):
        """Send it a signal. One that has ended meanwhile receives none."""
        with contextlib.suppress(ProcessLookupError):
            os.kill(self.pid, number)

    def wait(self, seconds=240):
        """What it came to; a process that was ended by a signal has its negative number, as in subprocess.

        Raises TimeoutError after so many seconds, when it and its children have been killed.
        """
        self._socket.settimeout(seconds)
        try:
            returncode = int(self._answers.readline())
        except TimeoutError:
            os.killpg(self.pid, signal.SIGKILL)
            raise
        finally:
            texts = [stream.read_text(encoding="utf-8", errors="replace") for stream in self._streams]
            self._folder.cleanup()
            self._answers.close()
            self._socket.close()
        return Ended(returncode, *texts)


def run(*words, env=None, cwd=None):
    """Run a Python command line to its end."""
    return Process(words, env=env, cwd=cwd).wait()


def called(words, folder, *, seconds=120):
    """Start a command line of the tool in the folder, with a limit of memory, and wait for its end."""
    return command(words, folder).wait(seconds)


def command(words, folder):
    """A command line of the tool in the folder, with a limit of memory, in a fork that has imported everything."""
    return Process(["-m", "steelyard", *words.split()], cwd=folder, memory=MEMORY, all_imported=True)


_servers: dict[tuple[int, bool], str] = {}


def _address(all_imported):
    """Where the warm process of this test process listens; the first call starts it."""
    key = (os.getpid(), all_imported)
    if key not in _servers:
        address = str(Path(tempfile.mkdtemp()) / "socket")
        line = [sys.executable, __file__, address, "all" if all_imported else "some"]
        server = subprocess.Popen(line, stdout=subprocess.PIPE, stderr=subprocess.DEVNULL, text=True)
        assert server.stdout.readline() == "ready\n"
        atexit.register(server.kill)
        _servers[key] = address
    return _servers[key]


class _Handler(socketserver.StreamRequestHandler):
    """Each request is handled in a process of its own, which waits for the fork."""

    has_ended = False

    def handle(self):
        request = json.loads(self.rfile.readline())
        # Until the fork has a handler of its own.
        signal.signal(signal.SIGINT, signal.SIG_DFL)
        pid = os.fork()
        if pid == 0:
            _become(**request)
        threading.Thread(target=self._end_with_client, args=(pid,), daemon=True).start()
        self.wfile.write(b"%d\n" % pid)
        _, status = os.waitpid(pid, 0)
        self.has_ended = True
        self.wfile.write(b"%d\n" % os.waitstatus_to_exitcode(status))

    def _end_with_client(self, pid):
        """Kill the fork when nobody waits for it: in its own session it receives no Ctrl-C of the terminal."""
        if not self.rfile.read(1) and not self.has_ended:
            with contextlib.suppress(ProcessLookupError):
                os.killpg(pid, signal.SIGKILL)


def _become(words, environment, folder, streams, memory):
    """Run the words in this process and end it, as the interpreter would."""
    code = 1
    try:
        _prepare(environment, folder, streams, memory)
        execute(words)
        code = 0
    except SystemExit as ending:
        code = ending.code if isinstance(ending.code, int) else int(ending.code is not None)
        if isinstance(ending.code, str):
            sys.stderr.write(f"{ending.code}\n")
    except BaseException:
        sys.excepthook(*sys.exc_info())
    finally:
        # The exit of an interpreter, with its handlers.
        threading._shutdown()
        atexit._run_exitfuncs()
        for stream in (sys.stdout, sys.stderr):
            with contextlib.suppress(ValueError):
                stream.flush()
        os._exit(code)


def _prepare(environment, folder, streams, memory):
    """Give this process a session, streams, signals, a folder and limits of its own, and no exit handlers yet."""
    os.setsid()
    for number, name in enumerate(streams, start=1):
        os.dup2(os.open(name, os.O_WRONLY | os.O_APPEND | os.O_CREAT), number)
    os.dup2(os.open(os.devnull, os.O_RDONLY), 0)
    sys.stdout, sys.stderr = (os.fdopen(number, "w", encoding="utf-8", buffering=1) for number in (1, 2))
    sys.__stdout__, sys.__stderr__ = sys.stdout, sys.stderr
    os.environ.clear()
    os.environ.update(environment)
    sys.path[:0] = filter(None, environment.get("PYTHONPATH", "").split(os.pathsep))
    os.chdir(folder)
    atexit._clear()
    if memory is not None:
        limit = _num_data_bytes() + memory
        resource.setrlimit(resource.RLIMIT_DATA, (limit, limit))
    signal.signal(signal.SIGINT, signal.default_int_handler)


def _num_data_bytes():
    lines = Path("/proc/self/status").read_text().splitlines()
    return next(int(line.split()[1]) for line in lines if line.startswith("VmData:")) * 1024


def execute(words):
    """As the interpreter reads its command line."""
    first, *rest = words
    if first == "-c":
        sys.argv = ["-c", *rest[1:]]
        sys.path.insert(0, "")
        main = type(sys)("__main__")
        sys.modules["__main__"] = main
        exec(compile(rest[0], "<string>", "exec"), main.__dict__)
    elif first == "-m":
        sys.argv = rest
        sys.path.insert(0, str(Path.cwd()))
        runpy.run_module(rest[0], run_name="__main__", alter_sys=True)
    else:
        sys.argv = words
        sys.path.insert(0, str(Path(first).parent))
        main = type(sys)("__main__")
        main.__file__ = first
        sys.modules["__main__"] = main
        exec(compile(Path(first).read_text(encoding="utf-8"), first, "exec"), main.__dict__)


class _Server(socketserver.ForkingMixIn, socketserver.UnixStreamServer):
    parent = os.getppid()
    block_on_close = False

    def service_actions(self):
        """Twice a second: ends with the test process."""
        super().service_actions()
        if os.getppid() != self.parent:
            os._exit(0)


def _import(everything):
    for name in IMPORTS:
        importlib.import_module(name)
    if everything:
        import transformers

        import steelyard

        for name in ("Qwen2ForCausalLM", "Qwen2ForSequenceClassification", "AutoModel", "AutoTokenizer"):
            getattr(transformers, name)
        for module in pkgutil.walk_packages(steelyard.__path__, "steelyard."):
            if module.name != "steelyard.__main__":
                with contextlib.suppress(ImportError):  # trackers that are not installed
                    importlib.import_module(module.name)
    gc.freeze()


if __name__ == "__main__":
    sys.path[0] = str(Path(__file__).parent)
    _import(everything=sys.argv[2] == "all")
    with _Server(sys.argv[1], _Handler) as server:
        sys.stdout.write("ready\n")
        sys.stdout.flush()
        server.serve_forever()
