"""The one line of a tool's output that a reader must not miss, word for word."""

from __future__ import annotations

import re

LONGEST = 130
# In the order of weight: what refuses, what warns, what changes, what sums up.
DECISIVE = (
    # reconciler
    r"^x refuse +\S+ .*\n(?: {12}\S.* → .* \S+:\d+\n)* +(?P<said>.*)",  # below the fields
    r"^error: (?:topics/\S+ )?(?P<said>.*)",
    r"^(?P<said>(?:[A-Z][a-z ]+\. )?Applied: .*)",
    r"^(?P<said>\d+ to (?:create|expand|configure).*)",
    r"^(?P<said>No changes\. \d.*)",
    # OpenTofu, Terraform
    r"^Error: (?P<said>.*)",
    r"^(?P<said>Plan: .*)",
    r"^(?P<said>No changes\..*)",
    r"^(?P<said>Apply complete!.*)",
    # topicctl
    r'level=error msg="(?:1 error occurred:\n\s*\* )?(?P<said>[^"\n]*)',
    r'level=warning msg="(?P<said>Extra partitions [^"\n]*)',
    r'level=info msg="(?P<said>Found \d+ key\(s\) with different values)',
    r'level=info msg="(?P<said>Would create topic)',
    r'level=info msg="(?P<said>Apply completed successfully!)',
    # Jikkou
    r"^\| #1 \| \w+ +\| (?P<said>.*?) +\|.*\n\| +\| +\| (?P<more>.*?) +\|",
    r'"message" : "(?P<said>[^"]*)',
    r"(?P<said>\d+ changes? detected.*)",
    r"(?P<said>No changes? detected.*)",
    r"TASK \[NONE\] (?P<said>Unchanged topic '\w+')",
    r"(?P<said>ok : \d+, created : .*)",
    # Kafka's scripts
    r"^Error while executing topic command : (?P<said>.*)",
    r"ExecutionException: org\.apache\.kafka\.common\.errors\.(?P<said>.*)",
    r"^(?P<said>Successfully started partition reassignments?)",
    r"^(?P<said>Created topic .*)",
    r"^(?P<said>Completed updating config.*)",
)


def quote(said: str) -> str:
    """Return the decisive line, shortened between words; nothing where no pattern matches."""
    for pattern in DECISIVE:
        if match := re.search(pattern, said, re.MULTILINE):
            return _shorten(" ".join(" ".join(match.groups()).split()))
    return ""


def _shorten(text: str) -> str:
    if len(text) <= LONGEST:
        return text
    return text[: LONGEST - 1].rsplit(" ", 1)[0].rstrip(" ,;:") + " …"
