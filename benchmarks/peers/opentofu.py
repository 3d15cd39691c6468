"""OpenTofu (or Terraform) with the provider Mongey/kafka: a saved plan, and its apply."""

from __future__ import annotations

import json
import os
import subprocess
from collections.abc import Sequence
from pathlib import Path

from tool import Missing, Place, Step, Topic, find

PROVIDER = "terraform-provider-kafka"
SETTINGS = """\
terraform {{
  required_providers {{
    kafka = {{ source = "Mongey/kafka" }}
  }}
}}
provider "kafka" {{
  bootstrap_servers = {servers}
  tls_enabled       = false
}}
"""
OVERRIDES = """\
provider_installation {{
  dev_overrides {{ "Mongey/kafka" = {directory} }}
  direct {{}}
}}
"""


class OpenTofu:
    """The state is a file in the place, as it is for a first user."""

    name = "OpenTofu + Mongey/kafka"

    def version(self) -> str:
        """Return the versions of the program and of the provider, as far as they tell."""
        said = subprocess.run(
            [_program(), "version"],
            capture_output=True,
            text=True,
            check=True,
            env={**os.environ, "TF_CLI_CONFIG_FILE": os.devnull},
        )
        return f"{said.stdout.splitlines()[0].split()[-1]} + {_provider_version()}"

    def environment(self, place: Place) -> dict[str, str]:
        """Take the provider from its binary, without a registry."""
        settings = place.directory / "cli.tfrc"
        provider = Path(find(PROVIDER, "TERRAFORM_PROVIDER_KAFKA"))
        settings.write_text(OVERRIDES.format(directory=json.dumps(str(provider.parent))))
        return {"TF_CLI_CONFIG_FILE": str(settings), "TF_IN_AUTOMATION": "1"}

    def steps(
        self, before: Sequence[Topic], wanted: Sequence[Topic], place: Place
    ) -> Sequence[Step]:
        """Write one resource a topic; plan into a file, apply the file."""
        servers = json.dumps(place.servers.split(","))
        text = SETTINGS.format(servers=servers) + "".join(map(_resource, wanted))
        (place.directory / "main.tf").write_text(text)
        plain = ("-no-color", "-input=false")
        return (
            Step("plan", (_program(), "plan", *plain, "-out=plan.tfplan")),
            Step("apply", (_program(), "apply", *plain, "plan.tfplan")),
        )


def _program() -> str:
    try:
        return find("tofu", "TOFU")
    except Missing:
        return find("terraform", "TERRAFORM")


def _provider_version() -> str:
    """Return the version in the binary's name, as in released terraform-provider-kafka_v1.2.3."""
    name = Path(find(PROVIDER, "TERRAFORM_PROVIDER_KAFKA")).name
    return name.removeprefix(PROVIDER).lstrip("_") or "a provider of unknown version"


def _resource(topic: Topic) -> str:
    config = "".join(f"    {json.dumps(k)} = {json.dumps(v)}\n" for k, v in topic.config)
    return (
        f'resource "kafka_topic" {json.dumps(topic.name)} {{\n'
        f"  name               = {json.dumps(topic.name)}\n"
        f"  partitions         = {topic.partitions}\n"
        f"  replication_factor = {topic.replication}\n"
        f"  config = {{\n{config}  }}\n}}\n"
    )
