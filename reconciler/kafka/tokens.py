"""OAuth tokens for the second client, had in the ways of librdkafka that need no code of a team.

librdkafka keeps the tokens that it fetches to itself.
"""

from __future__ import annotations

import base64
import json
import time
import urllib.error
import urllib.parse
import urllib.request
from types import MappingProxyType
from typing import TYPE_CHECKING, Any

from reconciler.kafka.errors import UntranslatableError
from reconciler.kafka.probe import Trust

if TYPE_CHECKING:
    from collections.abc import Iterable

    from reconciler.kafka.settings import Settings

TIMEOUT_S = 10.0
ENDPOINT = "sasl.oauthbearer.token.endpoint.url"

# What else librdkafka does to get a token, and the one value that is done here as well.
_SUPPORTED = MappingProxyType(
    {
        "sasl.oauthbearer.grant.type": "client_credentials",
        "sasl.oauthbearer.metadata.authentication.type": "none",
    }
)


class TokenError(OSError):
    """No OAuth token can be had; says from where and why, without secrets."""


def make_provider(settings: Settings) -> Any:
    """Make kafka-python's token provider, with its first token.

    kafka-python tries for half a minute to connect without one, and then reports that it timed out.
    Errors: UntranslatableError naming the property that only librdkafka takes; TokenError.
    """
    from kafka.net.sasl.oauth import AbstractTokenProvider

    _refuse_untranslatable(settings)

    class TokenProvider(AbstractTokenProvider):  # type: ignore[misc]
        """Fetches a token whenever a connection asks for one."""

        def __init__(self) -> None:
            self._first: str | None = fetch_token(settings)

        def token(self) -> str:
            """Return a token."""
            first, self._first = self._first, None
            return first or fetch_token(settings)

        def extensions(self) -> dict[str, str]:
            """Return what is sent along with it."""
            return read_extensions(settings)

    return TokenProvider()


def fetch_token(settings: Settings) -> str:
    """Fetch an OAuth token as librdkafka would. Errors: TokenError."""
    if not _is_oidc(settings):
        return _sign_nothing(settings.get("sasl.oauthbearer.config"))
    try:
        return _fetch_by_credentials(settings)
    except (OSError, ValueError, KeyError, TypeError) as error:
        if isinstance(error, urllib.error.HTTPError):
            error.close()
        endpoint = settings.get(ENDPOINT)
        reason = f"{type(error).__name__}: {error}"
        raise TokenError(f"no OAuth token comes from {endpoint}: {reason}") from error


def read_extensions(settings: Settings) -> dict[str, str]:
    """Read what is sent along with the token (RFC 7628 section 3.1), such as an identity pool."""
    if _is_oidc(settings):
        return _read_pairs(settings.get("sasl.oauthbearer.extensions").split(","))
    fields = _read_pairs(settings.get("sasl.oauthbearer.config").split())
    prefix = "extension_"
    return {n.removeprefix(prefix): text for n, text in fields.items() if n.startswith(prefix)}


def _is_oidc(settings: Settings) -> bool:
    return settings.get("sasl.oauthbearer.method") == "oidc"


def _refuse_untranslatable(settings: Settings) -> None:
    """Refuse the ways to a token that only librdkafka knows. Errors: UntranslatableError."""
    if not _is_oidc(settings):
        if settings.get("enable.sasl.oauthbearer.unsecure.jwt") == "true":
            return
        raise UntranslatableError("OAUTHBEARER works there with sasl.oauthbearer.method oidc only")
    for name, supported in _SUPPORTED.items():
        value = settings.get(name, supported)
        if value != supported:
            raise UntranslatableError(f"{name} {value} is not supported there, only {supported}")


def _read_pairs(parts: Iterable[str]) -> dict[str, str]:
    pairs = (part.partition("=") for part in parts if "=" in part)
    return {name.strip(): text.strip() for name, _, text in pairs}


def _fetch_by_credentials(settings: Settings) -> str:
    """Ask the endpoint by the client credentials grant (RFC 6749 section 4.4)."""
    prefix = "sasl.oauthbearer.client."
    name = settings.get(prefix + "id") or settings.get(prefix + "credentials.client.id")
    secret = settings.get(prefix + "secret") or settings.get(prefix + "credentials.client.secret")
    form = {"grant_type": "client_credentials"}
    if scope := settings.get("sasl.oauthbearer.scope"):
        form["scope"] = scope
    endpoint = settings.get(ENDPOINT)
    if not endpoint.startswith(("https://", "http://")):
        raise ValueError("this is not a web address")
    credentials = base64.b64encode(f"{name}:{secret}".encode()).decode()
    request = urllib.request.Request(  # noqa: S310 - the scheme is checked above
        endpoint,
        data=urllib.parse.urlencode(form).encode(),
        headers={"Authorization": f"Basic {credentials}"},
    )
    trust = Trust(settings.get("https.ca.location"), settings.get("https.ca.pem"))
    context = trust.build_context()
    with urllib.request.urlopen(  # noqa: S310
        request, timeout=TIMEOUT_S, context=context
    ) as answer:
        return str(json.load(answer)["access_token"])


def _sign_nothing(config: str) -> str:
    """Make the unsigned token of development clusters (RFC 7515 appendix A.5)."""
    fields = _read_pairs(config.split())
    now = int(time.time())
    lifetime = int(fields.get("lifeSeconds", "3600"))
    claims = {
        fields.get("principalClaimName", "sub"): fields.get("principal", ""),
        "iat": now,
        "exp": now + lifetime,
    }
    if scope := fields.get("scope"):
        claims[fields.get("scopeClaimName", "scope")] = scope.split(",")
    parts = ({"alg": "none"}, claims)
    encoded = (base64.urlsafe_b64encode(json.dumps(p).encode()).rstrip(b"=") for p in parts)
    return ".".join((*(part.decode() for part in encoded), ""))
