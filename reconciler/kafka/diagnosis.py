"""Why a connection fails, as findings: from the client's errors, and from a probe.

If the client refuses its settings, a finding names the property and the file, instead of
OpenSSL's words.
"""

from __future__ import annotations

import json
import re
from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from datetime import UTC, datetime
from pathlib import Path

from confluent_kafka import KafkaError

from reconciler.errors import Finding, Location
from reconciler.kafka.errors import error_of
from reconciler.kafka.probe import Listener, Reach, Untimely
from reconciler.kafka.settings import ClientSettings
from reconciler.spec.client_properties import MSK_IAM

_SOURCE = re.compile(r"^(?:\w+://)?(?P<server>[^\s/]+:\d+)/(?P<broker>bootstrap|\d+): ")
_TIMING = re.compile(r" \(after \d+ms in state \w+\)|, \d+ identical error\(s\) suppressed")
_OFFERED = re.compile(r"supported mechanisms: (?P<names>\S.*)$")
_SASL_CUT = re.compile(r"(?:SaslAuthenticateRequest|handshake) failed: Local: Broker transport")
_CERTIFICATE_OF_ENDPOINT = re.compile("SSL certificate|trust anchors")
_TLS_ALERT = re.compile(r"alert (?P<alert>[a-z ]+)")


@dataclass(frozen=True, slots=True)
class Trouble:
    """An error that the client reports for one server: librdkafka's code and a text.

    `broker` is the id of a broker from the cluster's metadata; None for a bootstrap server.
    """

    code: int
    text: str
    server: str = ""
    broker: int | None = None

    @property
    def tells_nothing(self) -> bool:
        """Return whether the error only summarizes other errors."""
        return self.code == KafkaError._ALL_BROKERS_DOWN


def read_trouble(error: KafkaError) -> Trouble:
    """Take server, broker and reason out of an error callback's text."""
    text = _TIMING.sub("", error.str())
    source = _SOURCE.match(text)
    if source is None:
        return Trouble(error.code(), text)
    broker = None if source["broker"] == "bootstrap" else int(source["broker"])
    return Trouble(error.code(), text[source.end() :], source["server"], broker)


def read_awaited(statistics: str, mechanism: str) -> tuple[Trouble, ...]:
    """Read the brokers that a client waits for, and with what, out of its statistics (JSON).

    Source: STATISTICS.md of librdkafka; the states are those of `rd_kafka_broker_state_names`.
    """
    found = []
    for broker in json.loads(statistics)["brokers"].values():
        state = broker["state"].partition("_")[0]
        if state in _NOT_AWAITED:
            continue
        what = {"SSL": "TLS", "AUTH": f"SASL {mechanism}"}.get(state, "the connection")
        learned = broker["nodeid"] if broker["source"] == "learned" else None
        text = f"{broker['nodename']} does not finish {what}"
        found.append(Trouble(KafkaError._TIMED_OUT, text, broker["nodename"], learned))
    return tuple(found)


_NOT_AWAITED = ("INIT", "UP", "UPDATE", "REAUTH")


def explain(
    settings: ClientSettings,
    troubles: Iterable[Trouble],
    listeners: Mapping[str, Listener],
    where: Location,
) -> list[Finding]:
    """Return why the connection fails, one finding per reason; none if no reason is known."""
    # The first error of a server counts: the client goes on trying, and later ones follow from it.
    told: dict[str, Trouble] = {}
    for trouble in troubles:
        told.setdefault(trouble.server, trouble)
    # A broker that the cluster named proves that a bootstrap server has answered.
    answered = any(trouble.broker is not None for trouble in told.values())
    explanation = _Explanation(settings, where)
    findings: dict[str, Finding] = {}
    for server in (*told, *(name for name in listeners if name not in told)):
        trouble = told.get(server, Trouble(KafkaError.NO_ERROR, "", server))
        listener = listeners.get(server)
        named = trouble.broker is not None
        finding = explanation.of_trouble(trouble, listener)
        silent = listener is not None and listener.reach is Reach.SILENT
        if finding is None and listener is not None and (named or not (answered and silent)):
            finding = explanation.of_listener(_say_server(trouble), listener, advertised=named)
        if finding:
            findings.setdefault(finding.rule, finding)
    return list(findings.values())


def _say_server(trouble: Trouble) -> str:
    if trouble.broker is None:
        return trouble.server
    return f"{trouble.server}, where the cluster says that broker {trouble.broker} is,"


@dataclass(frozen=True, slots=True)
class _Explanation:
    """Explanations of failures, given the settings in use."""

    settings: ClientSettings
    where: Location

    def of_trouble(self, trouble: Trouble, listener: Listener | None) -> Finding | None:
        """Explain by the client's own text if that is specific enough."""
        server = _say_server(trouble)
        if _SASL_CUT.search(trouble.text):
            mechanism = self.settings.mechanism
            what = f"{server} closes the connection during SASL {mechanism}, without a reason"
            way_out = f"{self._credentials()}; the log of the broker may say why"
            return self._finding("connect-credentials", what, way_out)
        if trouble.code == KafkaError._AUTHENTICATION:
            return self._authentication(server, trouble.text)
        if "certificate verify failed" in trouble.text:
            # The client's text is the same for an untrusted certificate, an expired one and one for
            # another name. The probe has found out which it is.
            if listener is not None and listener.untimely:
                return self._untimely(server, listener.untimely)
            return self._untrusted(server, misnamed=listener is not None and listener.signed)
        if alert := _TLS_ALERT.search(trouble.text):
            return self._client_certificate(server, alert["alert"].strip())
        return None

    def of_listener(
        self, server: str, listener: Listener, *, advertised: bool = False
    ) -> Finding | None:
        """Explain by the probe of the listener; None if the listener fits the settings."""
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
            way_out = f"use the port that does, or {'SASL_PLAINTEXT' if sasl else 'PLAINTEXT'}"
            return self._finding("connect-tls-unwanted", what, way_out)
        # SASL comes after TLS: a listener that cut TLS was not asked for its mechanisms.
        if listener.certificate_wanted:
            return self._client_certificate(server, "certificate required")
        if not sasl:
            if listener.mechanisms is None:
                return None
            offered = ", ".join(listener.mechanisms)
            secured = f"SASL_{protocol}"
            what = f"{server} asks for SASL ({offered}), and security.protocol is {protocol}"
            way_out = f"set security.protocol to {secured}, sasl.mechanism, and what that needs"
            return self._finding("connect-sasl-missing", what, way_out)
        if listener.mechanisms is None:
            return self._sasl_unwanted(server)
        if self.settings.sent_mechanism not in listener.mechanisms:
            return self._mechanism(server, ", ".join(listener.mechanisms))
        return None

    def _authentication(self, server: str, text: str) -> Finding:
        if "acquire SASL OAUTHBEARER token" in text:
            if self.settings.tokens is not None and (failure := self.settings.tokens.failure):
                return self._finding("connect-token", str(failure), failure.way_out)
            reason = text.partition(": ")[2]
            endpoint = self.settings.get("sasl.oauthbearer.token.endpoint.url", "the endpoint")
            what = f"no OAuth token comes from {endpoint}: {reason}"
            way_out = "check sasl.oauthbearer.token.endpoint.url, client.id and client.secret"
            if _CERTIFICATE_OF_ENDPOINT.search(reason):
                way_out = (
                    "set https.ca.location to the authority that signed the certificate of the "
                    "endpoint, or to probe for the authorities of this machine"
                )
            return self._finding("connect-token", what, way_out)
        # ILLEGAL_SASL_STATE: a listener without SASL answers a handshake with this error.
        if "not valid in current SASL state" in text:
            return self._sasl_unwanted(server)
        if offered := _OFFERED.search(text):
            return self._mechanism(server, offered["names"])
        mechanism = self.settings.mechanism
        reason = text.rpartition("error: ")[2]
        what = f"{server} does not accept the credentials of {mechanism}: {reason}"
        return self._finding("connect-credentials", what, self._credentials())

    def _credentials(self) -> str:
        if self.settings.mechanism == MSK_IAM:
            return (
                "check that the IAM policy of these credentials allows kafka-cluster:Connect on "
                "this cluster, and that aws.region is its region"
            )
        if self.settings.mechanism == "OAUTHBEARER":
            return "check the token's issuer, audience and scope against the broker's"
        return "check sasl.username, and what sasl.password refers to"

    def _mechanism(self, server: str, offered: str) -> Finding:
        what = f"{server} offers SASL {offered}, not {self.settings.sent_mechanism}"
        way_out = f"set sasl.mechanism to {offered}"
        if self.settings.mechanism == MSK_IAM:
            way_out = f"use the port for IAM, such as 9098, or {way_out}"
        return self._finding("connect-mechanism", what, way_out)

    def _sasl_unwanted(self, server: str) -> Finding:
        protocol = self.settings.protocol
        what = f"{server} does not speak SASL, and security.protocol is {protocol}"
        way_out = f"use the port that does, or {protocol.removeprefix('SASL_')}"
        return self._finding("connect-sasl-unwanted", what, way_out)

    def _untrusted(self, server: str, *, misnamed: bool) -> Finding:
        authority = self.settings.get("ssl.ca.location")
        against = f"ssl.ca.location {authority}" if authority else "this machine's authorities"
        if misnamed:
            what = f"the certificate of {server} is for another name"
            way_out = "use a name that the certificate holds in bootstrap.servers"
        else:
            what = f"the certificate of {server} is not signed by {against}"
            way_out = "set ssl.ca.location to the authority that signed it"
        return self._finding("connect-tls-untrusted", what, way_out)

    def _untimely(self, server: str, untimely: Untimely) -> Finding:
        """Explain that a certificate is not valid now by this machine's clock."""
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
        names = ("ssl.certificate.location", "ssl.certificate.pem", "ssl.keystore.location")
        if not any(self.settings.get(name) for name in names):
            what = f"{server} asks for a client certificate, and none is configured"
            way_out = "set ssl.certificate.location and ssl.key.location"
            return self._finding("connect-tls-client", what, way_out)
        what = f"{server} does not accept the client certificate ({alert})"
        way_out = (
            "use a certificate that is valid today, and signed by an authority that the brokers "
            "trust"
        )
        return self._finding("connect-tls-client", what, way_out)

    def _finding(self, rule: str, what: str, way_out: str) -> Finding:
        return Finding(rule, what, way_out, self.where)


_ADVERTISED = "check advertised.listeners of the broker, and the network from this machine"

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
        "check the network on the way",
    ),
    Reach.SILENT: (
        "connect-timeout",
        "does not answer",
        "check the address, the firewalls on the way, and that the broker is healthy",
    ),
    Reach.CLOSED: (
        "connect-not-kafka",
        "accepts the connection and closes it at once",
        "check the port, and that a broker runs behind it: a load balancer or a port-forward "
        "accepts connections without a broker",
    ),
    Reach.FOREIGN: (
        "connect-not-kafka",
        "answers, but not as Kafka does",
        "check the port: another service listens there",
    ),
    Reach.CONTROLLER: (
        "connect-controller",
        "is the port of a KRaft controller, which knows no topics",
        "use the port that the broker's listeners name for clients",
    ),
}


RULE = "client-property-value"

_CORRECT = "correct that property in clusters.yaml"
_FILES = (
    "ssl.ca.location",
    "ssl.certificate.location",
    "ssl.key.location",
    "ssl.keystore.location",
    "ssl.crl.location",
    "https.ca.location",
)
_ALSO_DIRECTORIES = ("ssl.ca.location", "https.ca.location")

# The expected content of a property.
_CONTENTS = {
    "ssl.ca": "certificate in PEM format",
    "ssl.certificate": "certificate in PEM format",
    "ssl.key": "private key in PEM format",
    "ssl.keystore": "PKCS#12 key store",
    "ssl.crl": "revocation list in PEM format",
    "https.ca": "certificate in PEM format",
}
_PROPERTY = re.compile(r"\b(?P<name>(?P<kind>ssl\.\w+|https\.ca)\.(?:location|pem))\b")
_UNREADABLE = re.compile(
    "PEM lib|PEM routines|DECODER routines|asn1 encoding|no certificate or crl found"
)
_PROTECTED = re.compile("BEGIN ENCRYPTED PRIVATE KEY|Proc-Type: 4,ENCRYPTED")


def explain_refusal(settings: ClientSettings, refusal: Exception, where: Location) -> list[Finding]:
    """Return why the client refuses its settings, given what its constructor raised.

    A finding shows no values, except paths of files.
    """
    # Files first, and all of them: the client stops at the first one that it cannot read.
    missing = []
    for name in _FILES:
        path = settings.get(name)
        if not path or path == "probe" or (name in _ALSO_DIRECTORIES and Path(path).is_dir()):
            continue
        try:
            Path(path).open("rb").close()
        except (OSError, ValueError) as error:  # the second is for a path with a null byte
            what = f"{name} is {path}: {getattr(error, 'strerror', error)}"
            way_out = "correct the path, or put the file there, readable for this run"
            missing.append(Finding(RULE, what, way_out, where))
    if missing:
        return missing
    told = error_of(refusal).str().removeprefix("Failed to create admin client: ")
    text = " ".join(told.split()).removesuffix(".")
    said = (
        _explain_mechanism(settings, text)
        or _explain_import(refusal, text)
        or _explain_token(text)
        or _explain_password(settings, text)
        or _explain_content(settings, text)
        or (f"the client does not accept its settings: {text}", _CORRECT)
    )
    return [Finding(RULE, *said, where)]


def _explain_mechanism(settings: ClientSettings, text: str) -> tuple[str, str] | None:
    """Explain a missing mechanism: the client's wheels are built without the Kerberos library."""
    if "No provider for SASL mechanism GSSAPI" not in text:
        return None
    # Without a mechanism librdkafka takes GSSAPI, which nobody has asked for then.
    if not (settings.get("sasl.mechanism") or settings.get("sasl.mechanisms")):
        what = f"security.protocol is {settings.protocol}, and sasl.mechanism is not set"
        return what, "set sasl.mechanism, such as SCRAM-SHA-512"
    what = (
        "sasl.mechanism GSSAPI (Kerberos) is not available: the wheels of confluent-kafka are "
        "built without it"
    )
    way_out = (
        "build confluent-kafka against a librdkafka with GSSAPI (pip install --no-binary "
        "confluent-kafka confluent-kafka), or use another mechanism"
    )
    return what, way_out


def _explain_import(refusal: Exception, text: str) -> tuple[str, str] | None:
    """Explain a property that needs another library, whose message ends with the command."""
    if not isinstance(refusal, ImportError):
        return None
    what, _, command = text.partition(" Install with: ")
    way_out = f"run {command} where reconciler is installed" if command else "install what it needs"
    return f"the client does not accept its settings: {what.removesuffix('.')}", way_out


def _explain_token(text: str) -> tuple[str, str] | None:
    """Explain a token that confluent-kafka fetches itself, and waits for without a reason."""
    if "OAuth token not set within" not in text:
        return None
    what = "AWS STS gives no token for sasl.oauthbearer.metadata.authentication.type aws_iam"
    way_out = (
        "check the AWS credentials with aws sts get-caller-identity, and region and audience in "
        "sasl.oauthbearer.config; for Amazon MSK write sasl.mechanism: AWS_MSK_IAM instead"
    )
    return what, way_out


def _explain_password(settings: ClientSettings, text: str) -> tuple[str, str] | None:
    """Explain keys and key stores with a wrong or missing password."""
    found = _PROPERTY.search(text)
    name = found["name"] if found else ""
    place = _say_place(settings, name)
    if name.startswith("ssl.keystore") and "mac verify failure" in text:
        what = f"ssl.keystore.password does not open {place}"
        return what, "check what ssl.keystore.password refers to"
    if not name.startswith("ssl.key."):
        return None
    if "key values mismatch" in text:
        what = f"{place} holds another key than that of the client certificate"
        return what, "use the key that belongs to the certificate"
    key = settings.get(name)
    if name.endswith(".location"):
        key = Path(key).read_text(encoding="utf-8", errors="replace")
    if not _PROTECTED.search(key):
        return None
    if settings.get("ssl.key.password"):
        return f"ssl.key.password does not open {place}", "check what ssl.key.password refers to"
    what = f"{place} is protected by a password, and ssl.key.password is not set"
    return what, "set ssl.key.password to ${env:NAME} or ${file:/absolute/path}"


def _explain_content(settings: ClientSettings, text: str) -> tuple[str, str] | None:
    """Explain files and texts with the wrong content."""
    found = _PROPERTY.search(text)
    if found is None or found["kind"] not in _CONTENTS or not _UNREADABLE.search(text):
        return None
    what = f"{_say_place(settings, found['name'])} holds no {_CONTENTS[found['kind']]}"
    return what, "check its content"


def _say_place(settings: ClientSettings, name: str) -> str:
    """Name a property, and its file if it names one; any other value may be secret."""
    return f"{name} {settings.get(name)}" if name.endswith(".location") else name
