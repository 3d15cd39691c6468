"""Tokens for Amazon MSK: as AWS's own library signs them, with whose credentials, for how long."""

from __future__ import annotations

import base64
import copy
import pickle
import sys
from collections.abc import Iterator
from datetime import UTC, datetime, timedelta
from pathlib import Path
from urllib.parse import parse_qs, urlsplit

import botocore.auth
import pytest
from aws_msk_iam_sasl_signer import MSKAuthTokenProvider
from sts import ROLE, ROLE_KEY, ROLE_SECRET, ROLE_TOKEN, Sts, serving_sts

from reconciler.errors import ClusterError, Location, hide_secrets, say_install
from reconciler.kafka import msk
from reconciler.kafka.connection import connect
from reconciler.kafka.errors import TokenError
from reconciler.kafka.msk import MskTokens
from reconciler.kafka.second_client import translate_settings
from reconciler.kafka.settings import ClientSettings, resolve_settings
from reconciler.spec.entry import ClusterEntry

HERE = Location("clusters.yaml", 3)
REGION = "eu-west-1"
KEYS = {
    "AWS_ACCESS_KEY_ID": "AKIAFIXED",
    "AWS_SECRET_ACCESS_KEY": "fixed-S3cret-key",
    "AWS_SESSION_TOKEN": "fixed-S3ssion-token",
}
CLIENT = {
    "bootstrap.servers": "127.0.0.1:9",
    "security.protocol": "SASL_SSL",
    "sasl.mechanism": "AWS_MSK_IAM",
    "aws.region": REGION,
}
FILES = """\
[topics]
aws_access_key_id = AKIAPROFILE
aws_secret_access_key = profile-S3cret-key
[empty]
region = eu-west-1
[program]
credential_process = /no/such/program
"""


@pytest.fixture(autouse=True)
def aws(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[None]:
    """Set fixed keys, a profile, and no other source of credentials."""
    (tmp_path / "credentials").write_text(FILES)
    files = {"AWS_SHARED_CREDENTIALS_FILE": "credentials", "AWS_CONFIG_FILE": "config"}
    for variable, file in files.items():
        monkeypatch.setenv(variable, str(tmp_path / file))
    monkeypatch.setenv("AWS_EC2_METADATA_DISABLED", "true")
    for variable, value in KEYS.items():
        monkeypatch.setenv(variable, value)
    for variable in ("AWS_PROFILE", "AWS_DEFAULT_REGION", "AWS_REGION"):
        monkeypatch.delenv(variable, raising=False)
    return


@pytest.fixture
def moment(monkeypatch: pytest.MonkeyPatch) -> datetime:
    """Return the moment at which everything is signed."""
    moment = datetime(2026, 3, 1, 12, 0, 0, tzinfo=UTC)
    monkeypatch.setattr(botocore.auth, "get_current_datetime", lambda: moment)
    return moment


@pytest.fixture
def sts(monkeypatch: pytest.MonkeyPatch) -> Iterator[Sts]:
    """Serve a stand-in for AWS STS, where every client of AWS looks for it."""
    with serving_sts() as served:
        monkeypatch.setenv("AWS_ENDPOINT_URL_STS", served.url)
        yield served


def remove_keys(monkeypatch: pytest.MonkeyPatch) -> None:
    for variable in KEYS:
        monkeypatch.delenv(variable)


def read_token(token: str) -> dict[str, str]:
    """Return what a token says."""
    url = urlsplit(base64.urlsafe_b64decode(token + "=" * (-len(token) % 4)).decode())
    assert url.hostname == f"kafka.{REGION}.amazonaws.com"
    return {name: values[0] for name, values in parse_qs(url.query).items()}


class TestTheTokenOfAwsLibrary:
    """For fixed keys at a fixed time, it is the same text."""

    def test_of_the_environment(self, moment: datetime) -> None:
        token, expires_s = MskTokens(REGION).fetch()
        assert (token, expires_s * 1000) == MSKAuthTokenProvider.generate_auth_token(REGION)
        assert expires_s == (moment + timedelta(minutes=15)).timestamp()
        said = read_token(token)
        assert said["Action"] == "kafka-cluster:Connect"
        assert said["X-Amz-Credential"] == f"AKIAFIXED/20260301/{REGION}/kafka-cluster/aws4_request"
        assert said["X-Amz-Security-Token"] == KEYS["AWS_SESSION_TOKEN"]

    @pytest.mark.usefixtures("moment")
    def test_of_a_profile(self) -> None:
        token, _ = MskTokens(REGION, profile="topics").fetch()
        theirs, _ = MSKAuthTokenProvider.generate_auth_token_from_profile(REGION, "topics")
        assert token == theirs
        assert read_token(token)["X-Amz-Credential"].startswith("AKIAPROFILE/")

    @pytest.mark.usefixtures("moment", "sts")
    def test_of_a_role(self, monkeypatch: pytest.MonkeyPatch) -> None:
        token, _ = MskTokens(REGION, role=ROLE).fetch()
        monkeypatch.setenv("AWS_DEFAULT_REGION", REGION)  # theirs has no other for STS
        theirs, _ = MSKAuthTokenProvider.generate_auth_token_from_role_arn(REGION, ROLE)
        assert token == theirs
        said = read_token(token)
        assert said["X-Amz-Credential"].startswith(f"{ROLE_KEY}/")
        assert said["X-Amz-Security-Token"] == ROLE_TOKEN


class TestRoles:
    def test_a_role_is_assumed_by_a_profile_with_its_conditions(self, sts: Sts) -> None:
        sts.external_id = "shop"
        tokens = MskTokens(
            REGION, profile="topics", role=ROLE, session_name="ci-7", external_id="shop"
        )
        assert read_token(tokens.fetch()[0])["X-Amz-Security-Token"] == ROLE_TOKEN
        (asked,) = sts.asked
        assert (asked["Action"], asked["RoleArn"]) == ("AssumeRole", ROLE)
        assert (asked["RoleSessionName"], asked["ExternalId"]) == ("ci-7", "shop")

    def test_the_session_is_called_reconciler(self, sts: Sts) -> None:
        MskTokens(REGION, role=ROLE).fetch()
        assert sts.asked[0]["RoleSessionName"] == "reconciler"

    def test_its_credentials_serve_until_they_are_about_to_expire(self, sts: Sts) -> None:
        tokens = MskTokens(REGION, role=ROLE)
        for _ in range(3):
            tokens._expires_s = 0
            tokens.fetch()
        assert len(sts.asked) == 1
        sts.lifetime = timedelta(minutes=5)
        soon = MskTokens(REGION, role=ROLE)
        for _ in range(3):
            soon._expires_s = 0
            soon.fetch()
        assert len(sts.asked) > 2


class TestHowLong:
    def test_a_token_is_replaced_after_half_of_its_life(
        self, monkeypatch: pytest.MonkeyPatch
    ) -> None:
        now_s = [datetime.now(UTC).timestamp()]
        monkeypatch.setattr(msk.time, "time", lambda: now_s[0])
        signed = datetime.fromtimestamp(now_s[0], UTC)
        monkeypatch.setattr(
            botocore.auth,
            "get_current_datetime",
            lambda: signed + timedelta(seconds=now_s[0] - signed.timestamp()),
        )
        tokens = MskTokens(REGION)
        first, expires_s = tokens.fetch()
        now_s[0] += 440
        assert tokens.fetch() == (first, expires_s)
        now_s[0] += 20
        second, later_s = tokens.fetch()
        assert second != first
        assert 455 < later_s - expires_s < 465

    def test_both_clients_share_a_token(self) -> None:
        settings = ClientSettings(CLIENT)
        spelled = settings._spell()
        token, _ = spelled["oauth_cb"](None)
        second = translate_settings(settings, ())
        assert second["sasl_oauth_token_provider"].token() == token
        assert settings.start_at("b:1")._spell()["oauth_cb"](None)[0] == token
        assert (spelled["sasl.mechanism"], second["sasl_mechanism"]) == ("OAUTHBEARER",) * 2
        assert not [name for name in spelled if name.startswith("aws.")]


def fail(**more: str) -> str:
    """Return the one finding of a connection that gets no token, without its place."""
    client = {**CLIENT, **{name.replace("_", "."): value for name, value in more.items()}}
    with pytest.raises(ClusterError) as refused:
        connect(ClusterEntry("lab", HERE, client=client)).client()
    assert refused.value.__cause__ is None
    (finding,) = refused.value.findings
    assert finding.where == HERE
    return str(finding).removeprefix(f"{HERE}: ")


class TestNoToken:
    def test_without_the_library(self, monkeypatch: pytest.MonkeyPatch) -> None:
        monkeypatch.setitem(sys.modules, "aws_msk_iam_sasl_signer.MSKAuthTokenProvider", None)
        assert fail() == (
            "sasl.mechanism AWS_MSK_IAM needs aws-msk-iam-sasl-signer-python, and it is not "
            f"installed; {say_install('msk')} [connect-token]"
        )
        assert say_install("msk").startswith("pip install 'aws-msk-iam-sasl-signer-python<2,>=1.0.")

    def test_without_credentials(self, monkeypatch: pytest.MonkeyPatch) -> None:
        remove_keys(monkeypatch)
        assert fail() == (
            "this machine has no AWS credentials; set AWS_ACCESS_KEY_ID and AWS_SECRET_ACCESS_KEY, "
            "or name a profile in aws.profile, or run it where AWS gives it a role [connect-token]"
        )
        assert fail(aws_profile="empty").startswith("aws.profile empty has no AWS credentials; ")

    def test_with_a_part_of_them(self, monkeypatch: pytest.MonkeyPatch) -> None:
        monkeypatch.delenv("AWS_SECRET_ACCESS_KEY")
        assert fail() == (
            "the AWS credentials cannot be used: Partial credentials found in env, missing: "
            "AWS_SECRET_ACCESS_KEY; check them with aws sts get-caller-identity [connect-token]"
        )

    def test_with_a_profile_that_is_not_there(self) -> None:
        assert fail(aws_profile="prod") == (
            "aws.profile prod is not in the AWS files of this machine; correct it, or add the "
            "profile to ~/.aws/config [connect-token]"
        )

    def test_with_a_program_of_a_profile_that_fails(self) -> None:
        said = fail(aws_profile="program")
        assert said.startswith("the AWS credentials cannot be used: ")
        assert "/no/such/program" in said

    def test_with_a_login_that_is_over(self, tmp_path: Path) -> None:
        (tmp_path / "config").write_text(
            "[profile sso]\nsso_session = corp\nsso_account_id = 123456789012\n"
            "sso_role_name = topics\n[sso-session corp]\nsso_region = eu-west-1\n"
            "sso_start_url = https://corp.example/start\n"
        )
        said = fail(aws_profile="sso")
        assert said.startswith("AWS gives no credentials: ")
        assert said.endswith("; run aws sso login --profile sso [connect-token]")

    @pytest.mark.usefixtures("sts")
    def test_with_a_role_that_may_not_be_assumed(self) -> None:
        other = "arn:aws:iam::123456789012:role/other"
        said = fail(aws_role_arn=other)
        assert said.startswith(
            f"AWS does not let these credentials assume aws.role.arn {other}: An error occurred "
            "(AccessDenied) when calling the AssumeRole operation: not authorized to perform: "
        )
        assert said.endswith(
            "; allow them sts:AssumeRole, in the trust policy of the role as well [connect-token]"
        )

    def test_with_an_sts_that_does_not_answer(self, monkeypatch: pytest.MonkeyPatch) -> None:
        monkeypatch.setenv("AWS_ENDPOINT_URL_STS", "http://127.0.0.1:9")
        monkeypatch.setenv("AWS_MAX_ATTEMPTS", "1")
        said = fail(aws_role_arn=ROLE)
        assert said.startswith("the AWS credentials cannot be used: Could not connect to ")

    def test_the_second_client_has_the_same_reason(self) -> None:
        with pytest.raises(TokenError, match=r"aws\.profile prod is not in the AWS files"):
            translate_settings(ClientSettings({**CLIENT, "aws.profile": "prod"}), ())

    def test_without_a_region(self) -> None:
        client = {name: value for name, value in CLIENT.items() if name != "aws.region"}
        entry = ClusterEntry("lab", HERE, client=client)
        with pytest.raises(
            ClusterError, match=r"its addresses name none; write the region, such as aws\.region"
        ):
            resolve_settings(entry, "kafka.internal:9098", {})
        named = "b-1.shop.a1b2c3.c4.kafka.us-east-1.amazonaws.com:9098"
        assert resolve_settings(entry, named, {}).tokens.region == "us-east-1"


class TestNoSecretIsShown:
    @pytest.mark.usefixtures("sts")
    def test_a_token_or_a_key_is_hidden_wherever_it_is_quoted(self) -> None:
        token, _ = MskTokens(REGION, role=ROLE).fetch()
        url = base64.urlsafe_b64decode(token + "=" * (-len(token) % 4)).decode()
        quoted = " ".join((f"<{token}>", url, *KEYS.values(), ROLE_SECRET, ROLE_TOKEN))
        said = hide_secrets(quoted)
        assert read_token(token)["X-Amz-Signature"] not in said
        assert "S3c" not in said
        assert "S3s" not in said
        assert token[20:40] not in said

    def test_what_aws_quotes_is_hidden(self, sts: Sts) -> None:
        sts.quotes = True
        said = fail(aws_role_arn="arn:aws:iam::123456789012:role/other")
        assert "X-Amz-Security-Token" in said
        assert KEYS["AWS_SESSION_TOKEN"] not in said

    def test_neither_printing_nor_copying_shows_one(self) -> None:
        settings = ClientSettings(CLIENT)
        token, _ = settings.tokens.fetch()
        provider = translate_settings(settings, ())["sasl_oauth_token_provider"]
        for thing in (settings, settings.tokens, provider):
            assert token[:12] not in f"{thing!r} {thing}"
            assert "S3" not in f"{thing!r} {thing}"
        for write in (pickle.dumps, copy.deepcopy):
            with pytest.raises(TypeError):
                write(settings.tokens)
