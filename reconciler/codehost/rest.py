"""JSON over HTTP for a code host: paging, retries, and a token that no message shows."""

from __future__ import annotations

import json
import time
from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass, field
from http import HTTPStatus
from http.client import HTTPException
from typing import Any
from urllib.error import HTTPError
from urllib.parse import urlencode
from urllib.request import Request, urlopen

from reconciler.errors import CodeHostError, Finding
from reconciler.rulebook import spell_page

PAGE = 100
"""The largest page that both hosts return."""
WAITS_S = (1.0, 2.0, 4.0, 8.0)
"""The waits between tries, unless the host asks for another."""
LONGEST_WAIT_S = 60.0
LOOK_AGAIN_S = 3.0
"""The time after which the effect of a request with a lost answer is visible."""
TIMEOUT_S = 30.0
_REFUSED = {HTTPStatus.UNAUTHORIZED, HTTPStatus.FORBIDDEN, HTTPStatus.NOT_FOUND}


class UnansweredError(CodeHostError):
    """A request may have taken effect or not: check before a retry."""


@dataclass(frozen=True)
class Rest:
    """A code host's REST interface, with the header that authenticates."""

    base: str
    secret: Mapping[str, str] = field(repr=False)
    headers: Mapping[str, str]
    wait: Callable[[float], None] = time.sleep

    def list(self, path: str, **query: str) -> Iterator[dict[str, Any]]:
        """Yield the items of every page."""
        page = 1
        while True:
            asked = urlencode({**query, "per_page": str(PAGE), "page": str(page)})
            items = self.send("GET", f"{path}?{asked}")
            yield from items
            if len(items) < PAGE:
                return
            page += 1

    def send(self, method: str, path: str, body: Mapping[str, Any] | None = None) -> Any:
        """Send a request and return the answer; retry if that is safe.

        Errors: CodeHostError; UnansweredError for a POST that may have taken effect.
        """
        for wait_s in (*WAITS_S, None):
            try:
                return self._ask(method, path, body)
            except HTTPError as error:
                trouble = read_trouble(error)
                unknown = method == "POST" and trouble.status >= HTTPStatus.INTERNAL_SERVER_ERROR
            except (OSError, HTTPException, ValueError) as error:
                trouble, unknown = Trouble(str(error)), method == "POST"
            if unknown:
                # Only a POST creates something: sent twice, it could create it twice.
                self.wait(LOOK_AGAIN_S)
                raise UnansweredError([self._find(method, path, trouble)])
            if wait_s is None or not trouble.passing:
                break
            self.wait(trouble.wait_s or wait_s)
        raise CodeHostError([self._find(method, path, trouble)])

    def _ask(self, method: str, path: str, body: Mapping[str, Any] | None) -> Any:
        content = None if body is None else json.dumps(body).encode()
        url = f"{self.base}/{path}"
        request = Request(url, content, dict(self.headers), method=method)  # noqa: S310 # the runner's
        request.add_header("Content-Type", "application/json")
        for name, value in self.secret.items():
            # urllib sends other headers again after a redirect, also to another host.
            request.add_unredirected_header(name, value)
        with urlopen(request, timeout=TIMEOUT_S) as answer:  # noqa: S310 # the runner's
            text = answer.read()
        return json.loads(text) if text else None

    def _find(self, method: str, path: str, trouble: Trouble) -> Finding:
        what = f"{method} {self.base}/{path.partition('?')[0]}: {trouble.said}"
        if trouble.status in _REFUSED:
            page = spell_page("reference/workflows", "what-runs")
            way_out = f"give the token of this job the permissions that {page} lists"
            return Finding("code-host-access", what, way_out)
        way_out = "run the job again; if that does not help, see the host's status page"
        return Finding("code-host-answer", what, way_out)


@dataclass(frozen=True, slots=True)
class Trouble:
    """The error, whether it is temporary, and the wait that the host requests."""

    said: str
    status: int = 0
    passing: bool = True
    wait_s: float | None = None


def read_trouble(error: HTTPError) -> Trouble:
    """Read an error of the host: its message, whether it is temporary, and the wait it requests."""
    text = error.read(10_000).decode(errors="replace")
    try:
        said = json.loads(text)
        text = str(said.get("message") or said.get("error") or text)
    except (ValueError, AttributeError):
        pass
    message = f"{error.code} {error.reason}: {text[:500]}"
    if error.code >= HTTPStatus.INTERNAL_SERVER_ERROR:
        return Trouble(message, error.code)
    asked = error.headers.get("retry-after", "")
    # GitHub reports its secondary rate limit as 403, with or without a header.
    limited = error.code == HTTPStatus.TOO_MANY_REQUESTS or "rate limit" in text.lower()
    if not (limited or asked):
        return Trouble(message, error.code, passing=False)
    wait_s = float(asked) if asked.isdecimal() else LONGEST_WAIT_S
    return Trouble(message, error.code, wait_s <= LONGEST_WAIT_S, wait_s)
