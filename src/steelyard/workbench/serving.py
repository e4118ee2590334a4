"""The server of a workbench: who can reach it, under which names, and whether a proxy before it speaks HTTPS.

One process serves a team; a database server behind it allows several, which share one port.
"""

import asyncio
import importlib
import ipaddress
import os
import re
import signal
import socket
import threading
import time
from collections.abc import Callable, Sequence
from multiprocessing.reduction import DupFd
from typing import Any, NamedTuple

import uvicorn
from fastapi import FastAPI
from uvicorn.protocols.http.httptools_impl import HttpToolsProtocol
from uvicorn.supervisors import Multiprocess

from steelyard.core.errors import ConfigError
from steelyard.core.remedies import NAME, Advice, Placeholder, Remedy
from steelyard.viewing.server import is_loopback, listening, url_of
from steelyard.workbench.application import Options, application
from steelyard.workbench.storage.database import Database

_LOCAL_NAMES = ("localhost", "127.0.0.1", "[::1]")
_EVERYWHERE = ("0.0.0.0", "::")
_IDLE_SECONDS = 75
"""Time for which a connection stays open for the next request: longer than a person reads most tasks."""
_GRACE_SECONDS = 10
"""Time for requests that run at the stop signal: an answer on its way is stored."""
_WATCH_SECONDS = 0.5
_SILENT_SECONDS = 120
"""Time that one of several processes may be silent before it is killed and made anew. It is silent while it starts,
which takes longer than uvicorn's 5 seconds on a busy machine: killed then, none of them would ever serve."""
_HEADER_SECONDS = 15.0
"""Time in which a connection has to end the headers of a request, or may go on sending after its answer."""
_LONGEST_HOST = 253
_HOST = re.compile(r"(?!-)[a-z0-9_-]{1,63}(?<!-)(\.(?!-)[a-z0-9_-]{1,63}(?<!-))*")
_PORT = re.compile(r":[0-9]{1,5}$")


class Reach(NamedTuple):
    """From where people reach a workbench.

    ``host`` and ``port``: where the server listens. ``public_names``: host names that people type. ``proxy``: the
    address of the proxy that speaks HTTPS with them, null without one. ``is_insecure``: HTTP over the network is meant.
    """

    host: str = "127.0.0.1"
    port: int = 8766
    public_names: tuple[str, ...] = ()
    proxy: str | None = None
    is_insecure: bool = False


def options_of(reach: Reach, *, is_simulated: bool = False) -> Options:
    """Return the options of the application.

    Raises ConfigError for a reach over which passwords would travel unprotected, for one without a name, and for names
    and addresses that are none.
    """
    names = tuple(map(_host_name, reach.public_names))
    if reach.proxy is not None:
        _proxy_address(reach.proxy)
    if not is_loopback(reach.host) and reach.proxy is None and not reach.is_insecure:
        raise ConfigError(
            "passwords would travel unencrypted",
            where=f"host {reach.host}",
            allowed="an address of this machine alone, such as 127.0.0.1",
            do=Advice(
                *("put a proxy with HTTPS before it and add ", Remedy("behind_https", value=True), ", or add "),
                *(Remedy("insecure", value=True), " in a network you trust"),
            ),
        )
    if not reach.public_names and (reach.proxy is not None or reach.host in _EVERYWHERE):
        raise ConfigError(
            "the name under which people reach it is not known",
            where="public_name",
            do=Advice("add ", Remedy("public_name", NAME), ", the host name in the address that people open"),
        )
    shown = f"[{reach.host}]" if ":" in reach.host else reach.host
    hosts = dict.fromkeys((*_LOCAL_NAMES, *names, *(() if reach.host in _EVERYWHERE else (shown,))))
    return Options(tuple(hosts), is_secure=reach.proxy is not None, is_simulated=is_simulated)


def _host_name(text: str) -> str:
    """Return a host name as browsers send it: lower case, other scripts in ASCII, without the port.

    A port says nothing about who asks, so that requests are compared without it. A wildcard would let a page of another
    site read this one through a name that it points here (DNS rebinding).
    """
    name = _PORT.sub("", text.strip()).removesuffix(".").lower()
    try:
        name = name.encode("idna").decode()
        if name.startswith("["):
            return f"[{ipaddress.IPv6Address(name.strip('[]'))}]"
    except (UnicodeError, ValueError):
        name = ""
    if len(name) <= _LONGEST_HOST and _HOST.fullmatch(name):
        return name
    raise ConfigError(
        f"{text[:50]!r} is no host name",
        where="public_name",
        allowed="a host name without https:// and path, such as label.example.org",
        do=Advice(
            "give the part of the address between https:// and the next slash: ",
            Remedy("public_name", "label.example.org"),
        ),
    )


def _proxy_address(text: str) -> str:
    """Return the address of a proxy, or of a network of them, in the form in which the server compares it."""
    try:
        network = ipaddress.ip_network(text.strip(), strict=False)
    except ValueError:
        raise ConfigError(
            f"{text[:50]!r} is no address",
            where="proxy",
            allowed="the IP address from which the proxy connects, or its network, such as 10.0.0.0/8",
            do=Advice("look it up on the proxy: ", Remedy("proxy", "192.0.2.7")),
        ) from None
    return str(network.network_address if network.num_addresses == 1 else network)


class _Making(NamedTuple):
    """Makes the application in the process that serves it. ``address``: that of the database, with its password.

    ``parent``: the process that started this one of several; null where one serves alone.
    """

    address: str
    options: Options
    parent: int | None = None

    def __call__(self) -> FastAPI:
        if self.parent is not None:
            threading.Thread(target=_end_with, args=(self.parent,), daemon=True).start()
        # The first page of figures would wait for it.
        threading.Thread(target=importlib.import_module, args=("scipy.special",), daemon=True).start()
        return application(Database(self.address), self.options)


def _end_with(parent: int) -> None:
    """End this process in order once its parent has ended: killed, it can neither stop this one nor free the port."""
    while os.getppid() == parent:
        time.sleep(_WATCH_SECONDS)
    os.kill(os.getpid(), signal.SIGTERM)


class _SharedListener(socket.socket):
    """The listener of several processes: each takes one connection at a time.

    asyncio takes all that wait, and a browser keeps its connection: of a hundred people who come at once one process
    would have three quarters, and give them the slowest answers for as long as they stay. One at a time, between other
    work, the processes take about as many each.
    """

    _has_taken = False

    def accept(self) -> tuple[socket.socket, Any]:
        """Take a connection; say that none waits when asked again at once, as asyncio does."""
        self._has_taken = not self._has_taken
        if not self._has_taken:
            raise BlockingIOError
        try:
            return super().accept()
        except OSError:
            self._has_taken = False
            raise

    def __reduce__(self) -> tuple[Callable[..., "_SharedListener"], tuple[Any, ...]]:
        # As `multiprocessing` passes any other socket to a process that it starts.
        return _received, (DupFd(self.fileno()), self.family, self.type, self.proto)


def _received(descriptor: Any, family: int, kind: int, protocol: int) -> _SharedListener:
    return _SharedListener(family, kind, protocol, fileno=descriptor.detach())


class TimedProtocol(HttpToolsProtocol):
    """The connection of a browser, which is closed where a request does not come to the end of its headers.

    uvicorn waits for them without end: a program that begins requests and ends none would take every connection that
    this process may have. The application bounds the time of a body, which begins once its headers are here.
    """

    header_seconds = _HEADER_SECONDS
    _closing: asyncio.TimerHandle | None = None

    def connection_made(self, transport: asyncio.Transport) -> None:
        """Begin to wait for the headers of the first request."""
        super().connection_made(transport)
        self._wait()

    def data_received(self, data: bytes) -> None:
        """Take what was sent; stop waiting where a request is being answered now."""
        super().data_received(data)
        if self.cycle is not None and not self.cycle.response_complete:
            self._stop_waiting()
        elif self._closing is None:
            self._wait()

    def connection_lost(self, exc: Exception | None) -> None:
        """End with the connection."""
        self._stop_waiting()
        super().connection_lost(exc)

    def _wait(self) -> None:
        self._closing = self.loop.call_later(self.header_seconds, self.transport.close)

    def _stop_waiting(self) -> None:
        if self._closing is not None:
            self._closing.cancel()
            self._closing = None


def serve(
    database: Database, options: Options, reach: Reach, *, num_processes: int = 1, announce: Callable[[str], None]
) -> None:
    """Serve until a stop signal. ``announce`` gets the address once it can be opened.

    Raises ConfigError for several processes on SQLite, OutputError where the port is taken or the host is not one of
    this machine, KeyboardInterrupt at the end.
    """
    if num_processes > 1 and database.is_sqlite:
        raise ConfigError(
            "SQLite has one writer at a time: several processes would only wait for each other",
            where=f"processes {num_processes}",
            allowed="1",
            do=Advice(
                *("omit ", Remedy("processes"), ", or take PostgreSQL: "),
                Remedy("database", Placeholder("postgresql://…")),
            ),
        )
    parent = None if num_processes == 1 else os.getpid()
    making = _Making(database.engine.url.render_as_string(hide_password=False), options, parent)
    settings = _settings(making, reach.proxy, num_processes)
    with listening(reach.host, reach.port) as listener:
        announce(url_of(reach.host, listener))
        if num_processes == 1:
            uvicorn.Server(settings).run(sockets=[listener])
            return
        # Each process opens its own connections, and is started again if it ends.
        database.close()
        shared = _SharedListener(listener.family, listener.type, listener.proto, fileno=listener.detach())
        with shared:
            Multiprocess(settings, sockets=[shared]).run()


def _settings(making: _Making, proxy: str | None, num_processes: int) -> uvicorn.Config:
    trusted: Sequence[str] = [] if proxy is None else [_proxy_address(proxy)]
    return uvicorn.Config(
        making,
        factory=True,
        http=TimedProtocol,
        ws="none",
        workers=num_processes,
        log_level="warning",
        access_log=False,
        lifespan="off",
        server_header=False,
        timeout_keep_alive=_IDLE_SECONDS,
        timeout_graceful_shutdown=_GRACE_SECONDS,
        timeout_worker_healthcheck=_SILENT_SECONDS,
        # Only the proxy is believed about where a request comes from: throttling counts logins by that address.
        proxy_headers=proxy is not None,
        forwarded_allow_ips=list(trusted),
    )
