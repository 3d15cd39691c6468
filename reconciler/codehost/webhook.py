"""A webhook: a notice as JSON or for Slack, sent to an address that no message shows."""

from __future__ import annotations

import json
import time
from collections.abc import Callable, Iterable, Iterator, Mapping
from dataclasses import asdict, dataclass, field
from http.client import HTTPException
from typing import Any
from urllib.error import HTTPError
from urllib.parse import urlsplit
from urllib.request import HTTPRedirectHandler, Request, build_opener

from reconciler.codehost.notices import Notice, TopicNotice
from reconciler.codehost.rest import Trouble, read_trouble
from reconciler.errors import (
    Finding,
    Severity,
    UsageError,
    WebhookError,
    escape_unprintable,
    keep_secret,
)

FORMAT_VERSION = "1.0"
"""The version of the JSON document: a new minor version only adds keys."""

MOST_TOPICS = 100
"""The limit of topics in the JSON document; the plan and the journal have all of them."""
MOST_REASON = 2_000
MOST_TOPIC_REASON = 500
"""The limits of reasons; the log of the run has all of them. Units: characters."""

SLACK_TOPICS = 20
"""A message is for people: the run has the other topics."""
SLACK_TEXT = 3_000
"""Slack refuses a text block that is longer. Units: characters, after its escapes."""
SLACK_HEADER = 150

TIMEOUT_S = 10.0
WAIT_S = 2.0
"""The wait before the only retry, unless the answer asks for another."""


@dataclass(frozen=True, slots=True)
class Webhook:
    """The address of a webhook, which contains what authenticates. Errors: UsageError."""

    address: str = field(repr=False)
    wait: Callable[[float], None] = time.sleep

    def __post_init__(self) -> None:
        if not _is_address(self.address):
            # Neither the address nor a part of it: it could be a secret in the wrong variable.
            raise UsageError("the webhook is not an http or https address without a user name")
        parts = urlsplit(self.address)
        for part in (self.address, parts.netloc, parts.hostname, parts.path, parts.query):
            keep_secret(part or "")

    def send(self, body: Mapping[str, Any]) -> None:
        """Send a notification; once more if that may help. Errors: WebhookError.

        A second copy of a notification does no harm, so a lost answer is also a reason to retry.
        """
        content = json.dumps(body).encode()
        trouble = self._post(content)
        if trouble and trouble.passing:
            self.wait(trouble.wait_s or WAIT_S)
            trouble = self._post(content)
        if trouble is None:
            return
        what = f"the webhook did not accept the notification: {trouble.said}"
        way_out = "check its address in the secrets of the workflow"
        raise WebhookError([Finding("webhook-answer", what, way_out, severity=Severity.WARNING)])

    def _post(self, content: bytes) -> Trouble | None:
        headers = {"Content-Type": "application/json", "User-Agent": "reconciler"}
        request = Request(self.address, content, headers, method="POST")  # noqa: S310 # checked
        try:
            with build_opener(_NoRedirect).open(request, timeout=TIMEOUT_S):
                return None
        except HTTPError as error:
            with error:
                return read_trouble(error)
        except (OSError, HTTPException, ValueError) as error:
            return Trouble(str(error) or type(error).__name__)


class _NoRedirect(HTTPRedirectHandler):
    """urllib would follow a redirect without the body."""

    def redirect_request(self, *_: Any) -> None:
        """Follow none: the answer is then an error."""


def _is_address(text: str) -> bool:
    try:
        parts = urlsplit(text)
        _ = parts.port
    except ValueError:
        return False
    is_plain = text.isascii() and text.isprintable() and " " not in text
    is_web = parts.scheme in ("http", "https") and bool(parts.hostname)
    return is_plain and is_web and parts.username is None


def render_json(notice: Notice) -> dict[str, Any]:
    """Return a notice as the document that docs/how-to/send-notifications.md describes."""
    return {
        "format_version": FORMAT_VERSION,
        "about": notice.about,
        "cluster": notice.cluster,
        "result": notice.result,
        "title": _cut(notice.title, MOST_REASON),
        "reason": _cut(notice.reason, MOST_REASON) or None,
        "counts": dict(sorted(notice.counts.items())),
        "topics": [
            asdict(one) | {"reason": _cut(one.reason, MOST_TOPIC_REASON)}
            for one in notice.topics[:MOST_TOPICS]
        ],
        "topics_left_out": max(0, len(notice.topics) - MOST_TOPICS),
        "fingerprint": notice.fingerprint,
        "run_url": notice.links.run,
        "request_url": notice.links.request,
        "commit_url": notice.links.commit,
    }


def render_slack(notice: Notice) -> dict[str, Any]:
    """Return a notice as a message of Slack: a text for previews, and blocks within its limits."""
    header = {"type": "plain_text", "text": _cut(notice.title, SLACK_HEADER), "emoji": False}
    lines = []
    if notice.about == "apply" and notice.counts:
        counts = sorted(notice.counts.items())
        lines.append(", ".join(f"{number:,} {result}" for result, number in counts))
    # An escaped character takes up to five.
    lines.append(_escape(_cut(notice.reason, SLACK_TEXT // 5)))
    lines += map(_say_topic, notice.topics[:SLACK_TOPICS])
    if beyond := len(notice.topics) - SLACK_TOPICS:
        lines.append(f"{beyond:,} more in the run" if beyond > 0 else "")
    named = {"run": notice.links.run, "request": notice.links.request}
    named["commit"] = notice.links.commit
    links = [f"<{_escape(url)}|{name}>" for name, url in named.items() if url]
    lines.append(_cut(" · ".join(links), SLACK_TEXT))
    sections = [
        {"type": "section", "text": {"type": "mrkdwn", "text": text}}
        for text in _pack(filter(None, lines))
    ]
    return {
        "text": _escape(_cut(notice.title, SLACK_TEXT // 5)),
        "blocks": [{"type": "header", "text": header}, *sections],
    }


def _say_topic(one: TopicNotice) -> str:
    name = f"`{_escape(_cut(one.topic, MOST_TOPIC_REASON))}`" if one.topic else "the plan"
    reason = f": {_escape(_cut(one.reason, MOST_TOPIC_REASON))}" if one.reason else ""
    rule = f" [{one.rule}]" if one.rule else ""
    return f"• *{one.result}* {name}{reason}{rule}"


def _pack(lines: Iterable[str]) -> Iterator[str]:
    """Put as many lines into each text as Slack takes."""
    text = ""
    for line in lines:
        if text and len(text) + 1 + len(line) > SLACK_TEXT:
            yield text
            text = ""
        text = f"{text}\n{line}" if text else line
    if text:
        yield text


def _escape(text: str) -> str:
    """Escape the characters that Slack gives a meaning, such as that of a mention."""
    return text.replace("&", "&amp;").replace("<", "&lt;").replace(">", "&gt;")


def _cut(text: str, limit: int) -> str:
    """Limit the length of a text, and escape what is not seen but the ends of its lines."""
    text = "\n".join(map(escape_unprintable, text.split("\n")))
    return text if len(text) <= limit else f"{text[: limit - 1]}…"
