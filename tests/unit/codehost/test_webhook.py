"""A webhook: what is tried once more, what is refused, and that no message has its address."""

from __future__ import annotations

from collections.abc import Iterator

import pytest
from code_host import Answer, Fault, serve
from code_hosts import WebhookHost

from reconciler.codehost.webhook import Webhook
from reconciler.errors import UsageError, WebhookError

BODY = {"text": "drift"}


@pytest.fixture
def host() -> Iterator[WebhookHost]:
    with serve(WebhookHost()) as host:
        assert isinstance(host, WebhookHost)
        yield host


@pytest.fixture
def waits() -> list[float]:
    return []


@pytest.fixture
def webhook(host: WebhookHost, waits: list[float]) -> Webhook:
    return Webhook(host.address, waits.append)


def test_a_notification_is_sent_once(host: WebhookHost, webhook: Webhook) -> None:
    webhook.send(BODY)
    assert (host.taken, len(host.asked)) == ([BODY], 1)


@pytest.mark.parametrize(
    ("answer", "waited"),
    [(None, 2.0), (Answer(503, "busy"), 2.0), (Answer(429, "slow", {"Retry-After": "7"}), 7.0)],
)
def test_a_passing_fault_is_tried_once_more(
    host: WebhookHost, webhook: Webhook, waits: list[float], answer: Answer | None, waited: float
) -> None:
    host.faults.append(Fault("POST", answer))
    webhook.send(BODY)
    assert (host.taken, waits) == ([BODY], [waited])


def test_two_faults_end_it(host: WebhookHost, webhook: Webhook) -> None:
    host.faults += [Fault("POST", Answer(503, "busy"))] * 3
    with pytest.raises(WebhookError, match=r"503 Service Unavailable.*busy.*webhook-answer"):
        webhook.send(BODY)
    assert len(host.asked) == 2


@pytest.mark.parametrize("status", [301, 302, 307, 400, 403, 404, 410])
def test_a_refusal_is_final_and_a_redirect_is_one(
    host: WebhookHost, webhook: Webhook, waits: list[float], status: int
) -> None:
    moved = {"Location": f"{host.url}/elsewhere"}
    host.faults.append(Fault("POST", Answer(status, f"invalid_token {host.address}", moved)))
    with pytest.raises(WebhookError, match=f": {status} .*invalid_token") as error:
        webhook.send(BODY)
    assert (host.asked, waits) == ([("POST", host.path)], [])
    assert_no_address(f"{error.value} {webhook!r}", host)
    assert error.value.exit_code == 69


def test_a_server_that_is_gone_is_reported_without_its_address(waits: list[float]) -> None:
    with serve(WebhookHost()) as host:
        assert isinstance(host, WebhookHost)
    with pytest.raises(WebhookError, match="refused") as error:
        Webhook(host.address, waits.append).send(BODY)
    assert waits == [2.0]
    assert_no_address(str(error.value), host)


@pytest.mark.parametrize(
    "address",
    [
        "file:///etc/passwd",
        "ftp://files.example/x",
        "hooks.example/services/x",
        "https://",
        "https://user:password@hooks.example/x",
        "https://hooks.example:port/x",
        "https://hooks.example/a b",
        "https://hooks.example/a\nb",
        "https://hooks.example/ä",
        "https://[::1/x",
    ],
)
def test_only_a_plain_address_of_the_web_is_taken(address: str) -> None:
    with pytest.raises(UsageError) as error:
        Webhook(address)
    assert str(error.value) == "the webhook is not an http or https address without a user name"


def assert_no_address(text: str, host: WebhookHost) -> None:
    for part in (host.address, host.url, host.path, host.url.removeprefix("http://")):
        assert part not in text
