"""Answers to requests that cannot be carried out: a page in the reader's words, or JSON for programs.

Their headers say what the status asks for: which methods there are, when to try again, how to log in.
"""

from collections.abc import Callable, Mapping, Sequence
from types import MappingProxyType
from urllib.parse import urlsplit

from fastapi import Request
from fastapi.exceptions import RequestValidationError
from sqlalchemy.exc import DataError
from starlette.exceptions import HTTPException
from starlette.responses import JSONResponse, RedirectResponse, Response
from starlette.routing import Match, Mount

from steelyard.annotation.pipeline import TransitionRefused
from steelyard.core.errors import UserError
from steelyard.core.remedies import Remedy
from steelyard.io.progress import log_error
from steelyard.workbench.accounts.people import Visitor
from steelyard.workbench.accounts.permissions import LoginNeeded, visitor_of
from steelyard.workbench.storage.database_errors import NoRoomError, UnavailableError
from steelyard.workbench.views.pages import language_of, page, refusal_text, words_of

_FORM_LIMITS = ("exceeded maximum size", "Too many f")
"""Messages of the parser of forms about a field, a part or a number of them that is too large, with status 400."""
_UNAVAILABLE = "the database of the workbench does not answer; tell an administrator, and send it again later"
_NO_ROOM = "the disk of the workbench is full; tell an administrator, and send it again later"
_RETRY = MappingProxyType({"retry-after": "10"})
"""When to ask a database again that does not answer: it may be starting."""
_NO_HEADERS: Mapping[str, str] = MappingProxyType({})
_Sentence = Callable[[Mapping[str, str]], str]
"""Returns a reason in the words of a language."""


def _is_interface(request: Request) -> bool:
    """Tell whether only programs send such a request: they read English."""
    return request.url.path.startswith("/api/")


def _wants_data(request: Request) -> bool:
    return _is_interface(request) or "application/json" in request.headers.get("accept", "")


def _on_login_needed(request: Request, error: LoginNeeded) -> Response:
    if _wants_data(request):
        reason = "log in, or send a token: Authorization: Bearer TOKEN"
        return _answer(request, None, 401, reason, {"www-authenticate": "Bearer"})
    return RedirectResponse("/login", 303)


def _on_http_error(request: Request, error: HTTPException) -> Response:
    is_unreadable = error.status_code == 400
    is_too_large = is_unreadable and any(words in error.detail for words in _FORM_LIMITS)
    headers = dict(error.headers or {})
    if error.status_code == 405 and (methods := _methods(request, request.url.path)):
        headers["Allow"] = ", ".join(methods)
    if is_unreadable and not is_too_large:
        return _problem(request, 400, error.detail, headers, sentence=lambda words: words["refused unreadable"])
    return _problem(request, 413 if is_too_large else error.status_code, error.detail, headers)


def _methods(request: Request, path: str) -> list[str]:
    """Return the methods that any route takes at an address: the router names those of the first one."""
    routes = [route for route in request.app.routes if not isinstance(route, Mount)]

    def is_taken(method: str) -> bool:
        return any(
            route.matches({**request.scope, "path": path, "method": method})[0] is Match.FULL for route in routes
        )

    return [method for method in ("GET", "HEAD", "POST", "PUT", "PATCH", "DELETE") if is_taken(method)]


def _on_wrong_request(request: Request, error: RequestValidationError) -> Response:
    # Only places and reasons: what was sent may hold a password.
    reasons = "; ".join(f"{'.'.join(map(str, each['loc']))}: {each['msg']}" for each in error.errors()[:5])
    is_json = "json" in request.headers.get("content-type", "")
    if not is_json and any(each["loc"] == ("body",) and each["type"] != "missing" for each in error.errors()):
        reasons += "; send Content-Type: application/json"
    fields = ", ".join(dict.fromkeys(str(each["loc"][-1]) for each in error.errors()[:5]))
    return _problem(request, 422, reasons, sentence=lambda words: words["refused fields"].format(fields=fields))


def _on_user_error(request: Request, error: UserError) -> Response:
    try:
        visitor = visitor_of(request)
    except UnavailableError as away:
        return _on_unavailable(request, away)
    except NoRoomError as full:
        return _on_no_room(request, full)
    reason = refusal_text(error, language_of(request, visitor))
    return _problem(request, 400, str(error), sentence=lambda _: reason)


def _on_no_room(request: Request, error: NoRoomError) -> Response:
    # 507 says that the same request may succeed later: the annotators' page keeps the answer and sends it again.
    # Only the people who run the server learn where the database is.
    log_error("error", error)
    return _problem(request, 507, f"nothing was stored: {_NO_ROOM}")


def _on_unavailable(request: Request, error: UnavailableError) -> Response:
    # 503 says the same as 507: what the annotators' page holds is sent again.
    log_error("error", error)
    # Who is logged in stands in the database, too.
    return _answer(request, None, 503, f"nothing was stored: {_UNAVAILABLE}", _RETRY)


def _on_transition_refused(request: Request, error: TransitionRefused) -> Response:
    return _problem(request, 409, f"another person was faster: {error}")


def _on_unstorable(request: Request, error: Exception) -> Response:
    reason = "a number is too large, or a text has characters that cannot be stored"
    return _problem(request, 400, reason, sentence=lambda words: words["refused unstorable"])


def on_fault(request: Request, error: Exception, *, headers: Sequence[tuple[bytes, bytes]]) -> Response:
    """Answer a request that ended in a fault of the program, which the server writes to its terminal."""
    answer = _answer(request, None, 500, "the workbench failed; its terminal says why")
    answer.headers["cache-control"] = "no-store"
    answer.raw_headers.extend(headers)
    return answer


def refuse_host(request: Request) -> Response:
    """Answer a request for a host that is not this workbench, without a word of what is in it."""
    setting = Remedy("public_name")
    reason = f"the workbench is not opened by this name: it is served under those of {setting} alone"
    return _answer(request, None, 400, reason, sentence=lambda words: words["refused host"].format(setting=setting))


def _problem(
    request: Request,
    status: int,
    reason: str,
    headers: Mapping[str, str] = _NO_HEADERS,
    *,
    sentence: _Sentence | None = None,
) -> Response:
    visitor = None
    if not _is_interface(request):
        try:
            visitor = visitor_of(request)
        except (NoRoomError, UnavailableError) as error:
            # The page says what it is about to every reader.
            log_error("error", error)
    return _answer(request, visitor, status, reason, headers, sentence=sentence)


def _answer(
    request: Request,
    visitor: Visitor | None,
    status: int,
    reason: str,
    headers: Mapping[str, str] = _NO_HEADERS,
    *,
    sentence: _Sentence | None = None,
) -> Response:
    """Return the answer: ``reason`` for programs, ``sentence`` for people.

    Without a sentence people read in English the reason, too, and in another language the words of the status.
    """
    if not _is_interface(request):
        language = language_of(request, visitor)
        words = words_of(language)
        if sentence is not None:
            reason = sentence(words)
        elif language != "en":
            reason = words.get(f"problem_{status}", words["problem_other"])
    if _wants_data(request):
        return JSONResponse({"error": reason}, status, dict(headers))
    values = {"number": status, "reason": reason, "before": _page_before(request)}
    answer = page(request, "problem.html", visitor, status=status, **values)
    answer.headers.update(headers)
    return answer


def _page_before(request: Request) -> str | None:
    """Return the address of the workbench's page that the request came from; null where it is not another one.

    The result of a form has an address that takes only forms: the page with the form, up to two levels above,
    replaces it. It also replaces such an address that is opened as a page, as a browser does that restores its tabs.
    """
    try:
        before = urlsplit(request.headers.get("referer", ""))
    except ValueError:
        return None
    is_own = before.netloc == request.headers.get("host")
    if not is_own and request.method != "GET":
        return None
    # Two slashes at the beginning would lead to another host.
    path = "/" + (before.path if is_own else request.url.path).lstrip("/")
    if is_own and path != request.url.path and "GET" in _methods(request, path):
        return path + (f"?{before.query}" if before.query else "")
    above = path.rpartition("/")[0]
    candidates = [each for each in (path, above, above.rpartition("/")[0]) if each]
    nearest = next((each for each in candidates if "GET" in _methods(request, each)), None)
    return None if nearest == request.url.path else nearest


HANDLERS: Mapping[type[Exception], Callable[..., Response]] = {
    LoginNeeded: _on_login_needed,
    HTTPException: _on_http_error,
    RequestValidationError: _on_wrong_request,
    UserError: _on_user_error,
    NoRoomError: _on_no_room,
    UnavailableError: _on_unavailable,
    TransitionRefused: _on_transition_refused,
    # Numbers and texts that no database stores: beyond 64 bits, NUL, half of a surrogate pair.
    DataError: _on_unstorable,
    OverflowError: _on_unstorable,
    UnicodeEncodeError: _on_unstorable,
}
"""By error: the answer to a request that ended in it."""
