"""Labels of topics: keys and values that a team chooses. They stay in git; Kafka never gets them.

Rules, quotas and filters compare them as texts, so their form is narrow. It includes every label
that Kubernetes accepts, because a KafkaTopic has such labels.
"""

from __future__ import annotations

import re
from collections.abc import Mapping

from reconciler.spec import fields
from reconciler.spec.fields import Kind, field_error
from reconciler.spec.values import YamlText, YamlValue, quote

KEY_PATTERN = r"^[A-Za-z0-9]([A-Za-z0-9._/-]{0,315}[A-Za-z0-9])?$"
VALUE_PATTERN = r"^([A-Za-z0-9@]([A-Za-z0-9._/:@+& -]{0,198}[A-Za-z0-9._/:@+&-])?)?$"
MOST_LABELS = 50


def _read_labels(value: YamlValue, name: str) -> Mapping[str, str | None]:
    """Read the labels of one layer. None removes an inherited label."""
    written = fields.read_map(value, name, "a map", "write labels: {tier: gold}")
    if len(written) > MOST_LABELS:
        what = f"{name} has {len(written):,} keys, more than {MOST_LABELS}"
        raise field_error("value-form", value.where, what, "keep the labels that you need")
    return dict(fields.read_each(written.entries(), lambda entry: _read_label(*entry)))


def _read_label(key: YamlText, value: YamlValue) -> tuple[str, str | None]:
    read_label_key(key, "label")
    if isinstance(value, YamlText) and value.is_null and not value.is_missing:
        return str(key), None
    if not isinstance(value, YamlText):
        raise fields.refuse_form(value, f"label {key}", "text", f"write {key}: some text")
    return str(key), str(read_label_value(value, f"label {key}"))


def is_label(key: str, value: str) -> bool:
    """Return whether a label has the form of one."""
    return bool(re.fullmatch(KEY_PATTERN, key) and re.fullmatch(VALUE_PATTERN, value))


def read_label_key(key: YamlText, name: str) -> YamlText:
    """Check the key of a label. Errors: FieldError."""
    if re.fullmatch(KEY_PATTERN, key):
        return key
    what = f"the {name} {quote(key)} is not a key of a label"
    way_out = "use ASCII letters, digits, '.', '_', '-' and '/', a letter or a digit at both ends"
    raise field_error("label-form", key.where, what, way_out)


def read_label_value(value: YamlValue, name: str) -> YamlText:
    """Read the value of a label, which may be empty. Errors: FieldError."""
    text = fields.read_text(value, name, empty=True)
    if re.fullmatch(VALUE_PATTERN, text):
        return text
    what = f"{name} has the value {quote(text)}, which is not a value of a label"
    way_out = (
        "use at most 200 ASCII letters, digits, blanks and . _ - / : @ + &, and begin with a "
        "letter or a digit"
    )
    raise field_error("label-form", text.where, what, way_out)


LABELS = Kind(
    _read_labels,
    {
        "type": "object",
        "patternProperties": {KEY_PATTERN: {"type": ["string", "null"], "pattern": VALUE_PATTERN}},
        "additionalProperties": False,
        "maxProperties": MOST_LABELS,
    },
    'map of texts, such as `{pii: "true", tier: gold}`; null removes an inherited label',
)
