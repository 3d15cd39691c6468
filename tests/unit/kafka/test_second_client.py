"""Ways to an OAuth token that the second client does not know, and what goes along with one."""

from __future__ import annotations

import pytest

from reconciler.kafka.errors import UntranslatableError
from reconciler.kafka.second_client import make_provider, read_extensions, translate_settings
from reconciler.kafka.settings import ClientSettings

SASL = {"security.protocol": "SASL_SSL", "sasl.mechanism": "OAUTHBEARER"}
OIDC = {"sasl.oauthbearer.method": "oidc"}
UNSIGNED = {"enable.sasl.oauthbearer.unsecure.jwt": "true"}


@pytest.mark.parametrize(
    ("name", "value"),
    [
        (
            "sasl.oauthbearer.grant.type",
            "urn:ietf:params:oauth:grant-type:jwt-bearer",
        ),
        ("sasl.oauthbearer.metadata.authentication.type", "aws_iam"),
    ],
)
def test_a_way_that_only_librdkafka_knows_is_refused_by_name(name: str, value: str) -> None:
    with pytest.raises(UntranslatableError, match=f"^{name} {value} is not supported there"):
        translate_settings(ClientSettings({**SASL, **OIDC, name: value}), ())


def test_a_method_of_the_teams_own_is_refused_by_name() -> None:
    with pytest.raises(UntranslatableError, match=r"sasl\.oauthbearer\.method"):
        make_provider(ClientSettings({}))


def test_unsigned_tokens_take_their_extensions_from_the_config() -> None:
    config = {"sasl.oauthbearer.config": "principal=me extension_teamName=orders"}
    assert make_provider(ClientSettings({**UNSIGNED, **config})).extensions() == {
        "teamName": "orders"
    }


def test_without_the_property_there_are_no_extensions() -> None:
    assert read_extensions(ClientSettings(OIDC)) == {}
