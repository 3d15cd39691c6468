"""Documents for programs on stdout, as JSON or as YAML."""

from __future__ import annotations

import json

import click

from reconciler.planfile.documents import Document


def print_document(document: Document, form: str, *, lines: bool = False) -> None:
    """Print a document as `json` or `yaml`. `lines`: several follow, so each is one line of JSON.

    A YAML document that others follow begins with `---`.
    """
    dumped = document.dump()
    if form == "json":
        click.echo(json.dumps(dumped, indent=None if lines else 2, ensure_ascii=False))
        return
    import yaml

    start = "---\n" if lines else ""
    text = yaml.safe_dump(dumped, sort_keys=False, allow_unicode=True, default_flow_style=None)
    click.echo(f"{start}{text}", nl=False)
