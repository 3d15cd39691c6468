"""Why the client refuses its settings: the property and the file, instead of OpenSSL's words."""

from __future__ import annotations

import re
from pathlib import Path
from typing import TYPE_CHECKING

from reconciler.errors import Finding

if TYPE_CHECKING:
    from collections.abc import Iterator

    from reconciler.errors import Location
    from reconciler.kafka.settings import Settings

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

# What a property is to hold.
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


def explain_refusal(settings: Settings, text: str, where: Location) -> list[Finding]:
    """Say why the client does not take its settings, given what it says itself.

    No finding shows a value but for the paths of files.
    """
    if findings := [Finding(RULE, *said, where) for said in _find_missing(settings)]:
        return findings
    said = (
        _explain_mechanism(settings, text)
        or _explain_password(settings, text)
        or _explain_content(settings, text)
        or (f"the client does not take its settings: {text}", _CORRECT)
    )
    return [Finding(RULE, *said, where)]


def _find_missing(settings: Settings) -> Iterator[tuple[str, str]]:
    """Find the files that cannot be read."""
    for name in _FILES:
        path = settings.get(name)
        if not path or path == "probe" or (name in _ALSO_DIRECTORIES and Path(path).is_dir()):
            continue
        try:
            Path(path).open("rb").close()
        except OSError as error:
            what = f"{name} is {path}: {error.strerror}"
            yield what, "correct the path, or put the file there, readable for this run"


def _explain_mechanism(settings: Settings, text: str) -> tuple[str, str] | None:
    """Kerberos needs a library that the client's wheels are built without."""
    if "No provider for SASL mechanism GSSAPI" not in text:
        return None
    if not (settings.get("sasl.mechanism") or settings.get("sasl.mechanisms")):
        what = f"security.protocol is {settings.protocol}, and sasl.mechanism is not set"
        return what, "set sasl.mechanism, such as SCRAM-SHA-512"
    what = (
        "sasl.mechanism GSSAPI (Kerberos) is not available: the wheels of confluent-kafka are "
        "built without it"
    )
    way_out = (
        "build confluent-kafka against a librdkafka with GSSAPI (pip install --no-binary "
        "confluent-kafka confluent-kafka), or take another mechanism"
    )
    return what, way_out


def _explain_password(settings: Settings, text: str) -> tuple[str, str] | None:
    """Keys and key stores that the password does not open, or that need one."""
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
        return what, "take the key and the certificate that were made together"
    if not _PROTECTED.search(_read(settings, name)):
        return None
    if settings.get("ssl.key.password"):
        return f"ssl.key.password does not open {place}", "check what ssl.key.password refers to"
    what = f"{place} is protected by a password, and ssl.key.password is not set"
    return what, "set ssl.key.password to ${env:NAME} or ${file:/absolute/path}"


def _explain_content(settings: Settings, text: str) -> tuple[str, str] | None:
    """Files and texts that hold something else."""
    found = _PROPERTY.search(text)
    if found is None or found["kind"] not in _CONTENTS or not _UNREADABLE.search(text):
        return None
    what = f"{_say_place(settings, found['name'])} holds no {_CONTENTS[found['kind']]}"
    return what, "check its content"


def _say_place(settings: Settings, name: str) -> str:
    """Name a property, and its file where it names one; what else it holds may be secret."""
    return f"{name} {settings.get(name)}" if name.endswith(".location") else name


def _read(settings: Settings, name: str) -> str:
    if not name.endswith(".location"):
        return settings.get(name)
    return Path(settings.get(name)).read_text(encoding="utf-8", errors="replace")
