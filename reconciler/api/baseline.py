"""Write the baseline of a policy into an estate."""

from __future__ import annotations

from pathlib import Path

from reconciler.adopt.baseline import DraftedBaseline, draft_baseline
from reconciler.api.estate_files import read_estate_files, write_texts
from reconciler.spec.baseline import BASELINE_FILE
from reconciler.spec.estate import parse_estate


def write_baseline(path: Path) -> DraftedBaseline:
    """Write what breaks the policy of an estate now into its baseline. Reasons are kept.

    Errors: UsageError; SpecError for any other error of the estate. Then nothing is written,
    because what breaks the policy is not known entirely.
    """
    estate = parse_estate(read_estate_files(path), str(path), exempts_all=True)
    drafted = draft_baseline(estate.exempt, estate.exemptions)
    if drafted.entries or estate.exemptions:
        write_texts(path, {BASELINE_FILE: drafted.text})
    return drafted
