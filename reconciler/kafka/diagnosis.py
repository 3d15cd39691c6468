"""Why a connection fails, as findings: from what the client reports and what a probe finds."""

from __future__ import annotations

import re
from dataclasses import dataclass
from datetime import UTC, datetime
from typing import TYPE_CHECKING

from confluent_kafka import KafkaError

from reconciler.errors import Finding
from reconciler.kafka.probe import Listener, Reach

if TYPE_CHECKING:
    from collections.abc import Iterable, Mapping

    from reconciler.errors import Location
    from reconciler.kafka.probe import Untimely
    from reconciler.kafka.settings import Settings

_SOURCE = re.compile(r"^(?:\w+://)?(?P<server>[^\s/]+:\d+)/(?P<broker>bootstrap|\d+): ")
_TIMING = re.compile(r" \(after \d+ms in state \w+\)|, \d+ identical error\(s\) suppressed")
_OFFERED = re.compile(r"supported mechanisms: (?P<names>\S.*)$")
_CERTIFICATE_OF_ENDPOINT = re.compile("SSL certificate|trust anchors")
_TLS_ALERT = re.compile(r"alert (?P<alert>[a-z ]+)")


@dataclass(frozen=True, slots=True)
class Trouble:
    """What the client reports of one server: an error code of its own, and a text.

    `broker` is the id of a broker whose address the cluster told; None for a bootstrap server.
    """

    code: int
    text: str
    server: str = ""
    broker: int | None = None

    @property
    def tells_nothing(self) -> bool:
        """Say whether it is only the sum of other troubles."""
        return self.code == KafkaError._ALL_BROKERS_DOWN


def read_trouble(error: KafkaError) -> Trouble:
    """Take server, broker and reason out of an error callback's text."""
    text = _TIMING.sub("", error.str())
    source = _SOURCE.match(text)
    if source is None:
        return Trouble(error.code(), text)
    broker = None if source["broker"] == "bootstrap" else int(source["broker"])
    return Trouble(error.code(), text[source.end() :], source["server"], broker)


def explain(
    settings: Settings,
    troubles: Iterable[Trouble],
    listeners: Mapping[str, Listener],
    where: Location,
) -> list[Finding]:
    """Say why no connection comes about, one finding for each reason; none where nobody knows."""
    told: dict[str, Trouble] = {}
    for trouble in troubles:
        told.setdefault(trouble.server, trouble)
    explanation = _Explanation(settings, where)
    findings: dict[str, Finding] = {}
    for server, trouble in told.items():
        finding = explanation.of_trouble(trouble, listeners.get(server))
        if finding is None and server in listeners:
            told_by_cluster = trouble.broker is not None
            finding = explanation.of_listener(
                _say_server(trouble), listeners[server], advertised=told_by_cluster
            )
        if finding:
            findings.setdefault(finding.rule, finding)
    for server, listener in listeners.items():
        if server not in told and (finding := explanation.of_listener(server, listener)):
            findings.setdefault(finding.rule, finding)
    return list(findings.values())


def _say_server(trouble: Trouble) -> str:
    if trouble.broker is None:
        return trouble.server
    return f"{trouble.server}, where the cluster says that broker {trouble.broker} is,"


@dataclass(frozen=True, slots=True)
class _Explanation:
    """The words, given the settings that were used."""

    settings: Settings
    where: Location

    def of_trouble(self, trouble: Trouble, listener: Listener | None) -> Finding | None:
        """Explain by the client's own text where that says enough."""
        server = _say_server(trouble)
        if trouble.code == KafkaError._AUTHENTICATION:
            return self._authentication(server, trouble.text)
        if "certificate verify failed" in trouble.text:
            if listener is not None and listener.untimely:
                return self._untimely(server, listener.untimely)
            return self._untrusted(server, misnamed=listener is not None and listener.signed)
        if alert := _TLS_ALERT.search(trouble.text):
            return self._client_certificate(server, alert["alert"].strip())
        return None

    def of_listener(
        self, server: str, listener: Listener, *, advertised: bool = False
    ) -> Finding | None:
        """Explain by what listens there; None where that fits the settings."""
        if listener.reach is Reach.BROKER:
            return self._mismatch(server, listener)
        rule, what, way_out = _REACHES[listener.reach]
        where: Location | None = self.where
        if self.settings.overridden:
            where, way_out = None, way_out.replace("bootstrap.servers", "--bootstrap-servers")
        return Finding(rule, f"{server} {what}", _ADVERTISED if advertised else way_out, where)

    def _mismatch(self, server: str, listener: Listener) -> Finding | None:
        protocol = self.settings.protocol
        tls, sasl = protocol.endswith("SSL"), protocol.startswith("SASL")
        if listener.tls and not tls:
            what = f"{server} speaks TLS, and security.protocol is {protocol}"
            secured = "SASL_SSL" if sasl or listener.mechanisms else "SSL"
            way_out = f"set security.protocol to {secured}, and ssl.ca.location"
            return self._finding("connect-tls-missing", what, way_out)
        if tls and not listener.tls:
            what = f"{server} does not speak TLS, and security.protocol is {protocol}"
            way_out = f"take the port that does, or {'SASL_PLAINTEXT' if sasl else 'PLAINTEXT'}"
            return self._finding("connect-tls-unwanted", what, way_out)
        if listener.certificate_wanted:
            return self._client_certificate(server, "certificate required")
        return self._mismatch_of_sasl(server, listener)

    def _mismatch_of_sasl(self, server: str, listener: Listener) -> Finding | None:
        protocol, mechanism = self.settings.protocol, self.settings.mechanism
        if not protocol.startswith("SASL"):
            if listener.mechanisms is None:
                return None
            offered = ", ".join(listener.mechanisms)
            secured = f"SASL_{protocol}"
            what = f"{server} asks for SASL ({offered}), and security.protocol is {protocol}"
            way_out = f"set security.protocol to {secured}, sasl.mechanism, and what that needs"
            return self._finding("connect-sasl-missing", what, way_out)
        if listener.mechanisms is None:
            return self._sasl_unwanted(server)
        if mechanism not in listener.mechanisms:
            return self._mechanism(server, ", ".join(listener.mechanisms))
        return None

    def _authentication(self, server: str, text: str) -> Finding:
        if "acquire SASL OAUTHBEARER token" in text:
            reason = text.partition(": ")[2]
            endpoint = self.settings.get("sasl.oauthbearer.token.endpoint.url", "the endpoint")
            what = f"no OAuth token comes from {endpoint}: {reason}"
            way_out = "check sasl.oauthbearer.token.endpoint.url, client.id and client.secret"
            if _CERTIFICATE_OF_ENDPOINT.search(reason):
                way_out = (
                    "point https.ca.location at the authority that signed the certificate of the "
                    "endpoint, or write probe for the authorities of this machine"
                )
            return self._finding("connect-token", what, way_out)
        if "not valid in current SASL state" in text:
            return self._sasl_unwanted(server)
        if offered := _OFFERED.search(text):
            return self._mechanism(server, offered["names"])
        mechanism = self.settings.mechanism
        reason = text.rpartition("error: ")[2]
        what = f"{server} does not accept the credentials of {mechanism}: {reason}"
        way_out = "check sasl.username, and what sasl.password refers to"
        if mechanism == "OAUTHBEARER":
            way_out = "check the token's issuer, audience and scope against the broker's"
        return self._finding("connect-credentials", what, way_out)

    def _mechanism(self, server: str, offered: str) -> Finding:
        what = f"{server} offers SASL {offered}, not {self.settings.mechanism}"
        return self._finding("connect-mechanism", what, f"set sasl.mechanism to {offered}")

    def _sasl_unwanted(self, server: str) -> Finding:
        protocol = self.settings.protocol
        what = f"{server} does not speak SASL, and security.protocol is {protocol}"
        way_out = f"take the port that does, or {protocol.removeprefix('SASL_')}"
        return self._finding("connect-sasl-unwanted", what, way_out)

    def _untrusted(self, server: str, *, misnamed: bool) -> Finding:
        authority = self.settings.get("ssl.ca.location")
        against = f"ssl.ca.location {authority}" if authority else "this machine's authorities"
        if misnamed:
            what = f"the certificate of {server} is for another name"
            way_out = "use a name that the certificate holds in bootstrap.servers"
        else:
            what = f"the certificate of {server} is not signed by {against}"
            way_out = "point ssl.ca.location at the authority that signed it"
        return self._finding("connect-tls-untrusted", what, way_out)

    def _untimely(self, server: str, untimely: Untimely) -> Finding:
        """Say that a certificate is not valid by the clock of this machine, which may be wrong."""
        expired, moment_s = untimely.expired, untimely.moment_s
        if moment_s is None:
            state = "has expired" if expired else "is not yet valid"
            what = f"the certificate of an authority that signed that of {server} {state}"
            whose = "the certificate of that authority"
        else:
            moment = f"{datetime.fromtimestamp(moment_s, UTC):%Y-%m-%d %H:%M} UTC"
            state = f"expired on {moment}" if expired else f"is not valid before {moment}"
            what = f"the certificate of {server} {state}"
            whose = "the certificate of the broker"
        today = f"{datetime.now(UTC):%Y-%m-%d}"
        way_out = f"renew {whose}, or correct the clock of this machine, which says {today}"
        return self._finding("connect-tls-validity", what, way_out)

    def _client_certificate(self, server: str, alert: str) -> Finding:
        if not (self.settings.get("ssl.certificate.location") or self._has_certificate()):
            what = f"{server} asks for a client certificate, and none is configured"
            way_out = "set ssl.certificate.location and ssl.key.location"
            return self._finding("connect-tls-client", what, way_out)
        what = f"{server} does not accept the client certificate ({alert})"
        way_out = "take one that is valid today, and signed by an authority that the brokers trust"
        return self._finding("connect-tls-client", what, way_out)

    def _has_certificate(self) -> bool:
        names = ("ssl.certificate.pem", "ssl.keystore.location")
        return any(self.settings.get(name) for name in names)

    def _finding(self, rule: str, what: str, way_out: str) -> Finding:
        return Finding(rule, what, way_out, self.where)


_ADVERTISED = "check advertised.listeners of the broker, and this machine's way there"

_REACHES: Mapping[Reach, tuple[str, str, str]] = {
    Reach.UNKNOWN_HOST: (
        "connect-host-unknown",
        "cannot be reached: no host has this name",
        "check the name in bootstrap.servers, and this machine's DNS",
    ),
    Reach.REFUSED: (
        "connect-refused",
        "refuses the connection: nothing listens there",
        "check the port, and that the broker runs",
    ),
    Reach.UNREACHABLE: (
        "connect-refused",
        "cannot be reached from this machine",
        "check the network between here and there",
    ),
    Reach.SILENT: (
        "connect-timeout",
        "does not answer",
        "check the address, firewalls between here and there, and that the broker is well",
    ),
    Reach.FOREIGN: (
        "connect-not-kafka",
        "answers, but not as Kafka does",
        "check the port: another service listens there",
    ),
    Reach.CONTROLLER: (
        "connect-controller",
        "is the port of a KRaft controller, which knows no topics",
        "take the port that the broker's listeners name for clients",
    ),
}
