"""Tokens for Amazon MSK with IAM (AWS_MSK_IAM), signed by AWS's own library.

A token is a signed request that is never sent to AWS. The brokers take it as the token of
OAUTHBEARER. It is valid for 15 minutes, so a long run needs many.
"""

from __future__ import annotations

import threading
import time
from functools import partial
from typing import Any, NoReturn

from reconciler.errors import hide_form, keep_secret, say_install
from reconciler.kafka.errors import TokenError

# What a token is in base64, and what it says: brokers may quote either.
_TOKENS = (r"aHR0cHM6Ly9rYWZr[\w-]+", r"X-Amz-(?:Signature|Security-Token)=[^&\s]+")

_NO_CREDENTIALS = (
    "set AWS_ACCESS_KEY_ID and AWS_SECRET_ACCESS_KEY, or name a profile in aws.profile, or run it "
    "where AWS gives it a role"
)
_CHECK = "check them with aws sts get-caller-identity"


class MskTokens:
    """The tokens of one client, for all of its connections and both of its libraries.

    Safe to share between threads. Printing it shows no secret.
    """

    def __init__(
        self,
        region: str,
        *,
        profile: str = "",
        role: str = "",
        session_name: str = "",
        external_id: str = "",
    ) -> None:
        self.region = region
        self.profile = profile
        self.role = role
        self._assuming = {"RoleSessionName": session_name or "reconciler"}
        if external_id:
            self._assuming["ExternalId"] = external_id
        self._lock = threading.Lock()
        self._credentials: Any = None
        self._token, self._made_s, self._expires_s = "", 0.0, 0.0
        self.failure: TokenError | None = None
        """Why there was no token the last time; None if there was one."""

    def __repr__(self) -> str:
        return f"MskTokens({self.region})"

    def __reduce__(self) -> NoReturn:
        raise TypeError("tokens are secrets: they are not written anywhere")

    def fetch(self, _: object = None) -> tuple[str, float]:
        """Return a token and when it expires, in seconds since 1970; librdkafka's `oauth_cb`.

        It is a new one once half of the life of the last one is over: both libraries ask again
        after four fifths. Errors: TokenError. Cost: 0.3 s for the first one, most of it the import;
        with a role, a request to AWS once an hour.
        """
        with self._lock:
            if time.time() >= (self._made_s + self._expires_s) / 2:
                try:
                    self._token, self._expires_s = self._sign()
                except TokenError as error:
                    self.failure = error
                    raise
                self.failure = None
                self._made_s = time.time()
            return self._token, self._expires_s

    def _sign(self) -> tuple[str, float]:
        try:
            from aws_msk_iam_sasl_signer.MSKAuthTokenProvider import (
                generate_auth_token_from_credentials_provider as sign,
            )
        except ImportError:
            what = "sasl.mechanism AWS_MSK_IAM needs aws-msk-iam-sasl-signer-python, and it is not "
            raise TokenError(f"{what}installed", say_install("msk")) from None
        from botocore.exceptions import BotoCoreError, ClientError

        try:
            token, expires_ms = sign(self.region, self._provide(self._find_credentials()))
        # A profile can ask for a code on the terminal (EOFError) or run a program (OSError).
        except (BotoCoreError, ClientError, ValueError, EOFError, OSError) as error:
            failure = error if isinstance(error, TokenError) else self._explain(error)
        else:
            for form in _TOKENS:
                hide_form(form)
            return token, expires_ms / 1000
        # Outside the except block, so without a cause: AWS may quote what it was sent.
        raise failure

    def _find_credentials(self) -> Any:
        """Find the credentials that sign: of the environment, a profile, a machine, or a role."""
        if self._credentials is None:
            from botocore.credentials import (
                AssumeRoleCredentialFetcher,
                DeferredRefreshableCredentials,
            )
            from botocore.session import Session

            session = Session(profile=self.profile or None)
            found = session.get_credentials()
            if found is None:
                whose = f"aws.profile {self.profile}" if self.profile else "this machine"
                raise TokenError(f"{whose} has no AWS credentials", _NO_CREDENTIALS)
            if self.role:
                self._keep(found)
                fetcher = AssumeRoleCredentialFetcher(
                    partial(session.create_client, region_name=self.region),
                    found,
                    self.role,
                    extra_args=self._assuming,
                )
                found = DeferredRefreshableCredentials(fetcher.fetch_credentials, "assume-role")
            self._credentials = found
        self._keep(self._credentials)
        return self._credentials

    @staticmethod
    def _keep(credentials: Any) -> None:
        """Hide credentials in all messages; reading them renews those that expire."""
        frozen = credentials.get_frozen_credentials()
        for secret in (frozen.secret_key, frozen.token):
            if secret:
                keep_secret(secret)

    @staticmethod
    def _provide(credentials: Any) -> Any:
        """Return the credentials in the form that the library takes."""
        from botocore.credentials import CredentialProvider

        # In a function, because its base class is imported here only.
        class Provider(CredentialProvider):  # type: ignore[misc]
            """A provider of credentials that are known."""

            def load(self) -> Any:
                """Return the credentials."""
                return credentials

        return Provider()

    def _explain(self, error: Exception) -> TokenError:
        from botocore.exceptions import ClientError, ProfileNotFound, SSOError

        text = " ".join(str(error).split()).removesuffix(".")
        if isinstance(error, ProfileNotFound):
            what = f"aws.profile {self.profile} is not in the AWS files of this machine"
            return TokenError(what, "correct it, or add the profile to ~/.aws/config")
        if isinstance(error, SSOError):
            login = f"aws sso login --profile {self.profile}" if self.profile else "aws sso login"
            return TokenError(f"AWS gives no credentials: {text}", f"run {login}")
        if self.role and isinstance(error, ClientError) and error.operation_name == "AssumeRole":
            what = f"AWS does not let these credentials assume aws.role.arn {self.role}: {text}"
            way_out = "allow them sts:AssumeRole, in the trust policy of the role as well"
            return TokenError(what, way_out)
        return TokenError(f"the AWS credentials cannot be used: {text}", _CHECK)
