"""The page: well formed, complete, and closed to whatever names hold."""

from __future__ import annotations

import re
from base64 import b64encode
from collections.abc import Mapping
from dataclasses import fields, is_dataclass, replace
from enum import Enum
from hashlib import sha256
from html.parser import HTMLParser
from typing import Any

import pytest
from sample_page import HOSTILE, SAMPLE, make_rows

from reconciler.fleet.page.contents import (
    MOST_BROKERS,
    BrokerLoad,
    FleetPage,
    FleetTotals,
    Kept,
    LoadShare,
    PlanTotals,
)
from reconciler.fleet.page.html import render_page

LABEL = re.compile(r"#(\S+ td:nth-child\(\d+\))::before \{ content: \"(.*?)\"; \}")
VOID = {"meta", "link", "br", "img", "input", "wbr"}


class Reading(HTMLParser):
    """What a browser reads in a page: texts, elements, and what is left open or closed twice."""

    def __init__(self, page: str) -> None:
        super().__init__()
        self.texts: list[str] = []
        self.elements: list[tuple[str, dict[str, str | None]]] = []
        self.open: list[str] = []
        self.feed(page)
        self.close()

    def handle_starttag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        self.elements.append((tag, dict(attrs)))
        if tag not in VOID:
            self.open.append(tag)

    def handle_startendtag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        self.elements.append((tag, dict(attrs)))

    def handle_endtag(self, tag: str) -> None:
        assert self.open.pop() == tag

    def handle_data(self, text: str) -> None:
        self.texts.append(text)

    def find(self, tag: str) -> list[dict[str, str | None]]:
        return [found for name, found in self.elements if name == tag]


@pytest.fixture(scope="module")
def page() -> Reading:
    return Reading(render_page(SAMPLE))


def test_every_element_is_closed(page: Reading) -> None:
    assert page.open == []


def test_ids_are_unique_and_links_lead_somewhere(page: Reading) -> None:
    ids = [found["id"] for _, found in page.elements if "id" in found]
    assert len(ids) == len(set(ids))
    links = {str(found["href"]) for found in page.find("a")}
    assert {link.removeprefix("#").partition("?")[0] for link in links} <= set(ids)


def test_a_hostile_name_is_a_text_and_never_markup(page: Reading) -> None:
    assert page.texts.count(HOSTILE) >= 5
    assert len(page.find("script")) == 1
    assert page.find("img") == []
    assert not any(name.startswith("on") for _, found in page.elements for name in found)


def test_nothing_is_fetched(page: Reading) -> None:
    sources = [found.get("src") or found.get("href") or "" for _, found in page.elements]
    assert [source for source in sources if source and not source.startswith(("#", "data:"))] == []


def test_the_policy_allows_this_script_and_style_alone() -> None:
    text = render_page(SAMPLE)
    (policy,) = re.findall(r'Security-Policy" content="([^"]*)"', text)
    for name in ("script", "style"):
        (inside,) = re.findall(f"<{name}>(.*?)</{name}>", text, re.DOTALL)
        told = "sha256-" + b64encode(sha256(inside.encode()).digest()).decode()
        assert f"{name}-src '{told}'".replace("'", "&#39;") in policy


@pytest.mark.parametrize(
    "said",
    [
        "4",  # clusters read
        "of 5",
        "brokers down",
        "on 1 cluster",
        "broker 2 is down",
        "retention.ms 35d",
        "12 → 24 partitions",
        "2–3",
        "8.0 TiB",
        "1,246",
        "5,678",
        "in 3 plans",
        "5 of 1,239 topics",
        "0.4 %",
        "connection refused",
        "its rows cannot be read",
        "12 → 8 partitions: Kafka cannot remove partitions [partitions-never-shrink]",
        "topics/audit.yaml:6",
        "6 → 12 partitions",
        "in_sync 2, replicas 3",
        "look at broker 2",
        "17",
        "3 of 4,321 topics, the least even first; 4,318 left out.",
        "5 of 6 clusters, the worst first; 1 left out.",
    ],
)
def test_what_the_fleet_says_is_there(page: Reading, said: str) -> None:
    assert said in page.texts


def test_when_it_was_made_and_from_what(page: Reading) -> None:
    text = "".join(page.texts)
    assert "Collection 20261121T030000Z, 2026-11-21 03:00 UTC, specs at 9f3c2ab." in text
    assert "Page made 2026-11-21 04:05 UTC." in text


def test_what_is_made_up_is_marked(page: Reading) -> None:
    assert "1 cluster of 5 here is made up" in "".join(page.texts)
    assert sum("synthetic" in str(found.get("class")) for found in page.find("rect")) == 1


def test_pictures_say_what_they_show(page: Reading) -> None:
    labels = [found.get("aria-label") for found in page.find("svg") if "role" in found]
    assert "30 before, 4 after" in labels
    assert "drift so far: 9, not planned, 5" in labels
    hidden = [found for found in page.find("svg") if found.get("aria-hidden") == "true"]
    assert len(hidden) + len(labels) == len(page.find("svg"))


def test_a_fleet_without_plans_drift_or_audit() -> None:
    bare = FleetPage("20261121T030000Z", "now", None, FleetTotals(0, 0, 0, 0, 0, 0), Kept())
    text = "".join(Reading(render_page(bare)).texts)
    assert "not planned yet" in text
    assert "The lake holds no audit of this collection: reconciler fleet audit" in text
    assert "No collection is planned yet" in text


def test_the_largest_page_is_bounded() -> None:
    cluster = SAMPLE.clusters.rows[2]
    share = LoadShare(2**41 + 123, 2**42, 2**41 + 456, 2**43, outside=True, aimed=True)
    bands = {"disk": share, "write": share}
    brokers = tuple(
        BrokerLoad(1_000 + n, f"rack-{n % 3}", 14_000, 42_000, size_bytes=2**41, bands=bands)
        for n in range(20)
    )
    plan = PlanTotals(100_000, 2_000, 300_000, 5_000, 12_000, 11_000, 34_000, 33_000)
    large = replace(cluster, brokers=brokers, plan=plan, drifts=(12_345,) * 60)
    clusters = tuple(replace(large, name=f"production-europe-{n:03}") for n in range(150))
    assert len(brokers) * len(clusters) == MOST_BROKERS
    long = {name: Kept((SAMPLE.rows(name)[0],) * 500, 400_000) for name in ("topics", "changes")}
    full = replace(
        SAMPLE,
        clusters=Kept(clusters, 150),
        tables={**SAMPLE.tables, **long},
        drift=SAMPLE.drift * 20,
    )
    assert len(render_page(full).encode()) < 3_500_000


def test_loads_are_listed_below_their_brokers_and_drawn(page: Reading) -> None:
    text = "".join(page.texts)
    assert "1.0 TiB+28 %" in text.replace("\n", "")
    assert "2 of 3 brokers are outside: 1, 4" in text
    assert "balance.by does not name write" in text
    assert "balance.by does not name disk" not in text


def test_a_page_without_bands_draws_none() -> None:
    row = SAMPLE.clusters.rows[2]
    bare = replace(row, brokers=tuple(replace(broker, bands={}) for broker in row.brokers))
    html = render_page(replace(SAMPLE, clusters=Kept((bare,), 1)))
    assert 'class="loads"' not in html
    assert "on disk</th>" not in html


def test_the_same_fleet_is_the_same_page() -> None:
    assert render_page(SAMPLE) == render_page(SAMPLE)


def test_next_leaders_of_the_audit_are_listed_with_their_bounds(page: Reading) -> None:
    start = page.texts.index("Leaders that one broker takes over")
    shown = [text.strip() for text in page.texts[start:] if text.strip()]
    assert "1 of 2 clusters, the farthest from their bounds first; 1 left out." in shown
    place = shown.index("31")
    assert shown[place - 1 : place + 4] == [HOSTILE, "31", "13", "37", "29"]


def test_every_cell_has_the_title_of_its_column_on_a_narrow_screen(page: Reading) -> None:
    """There each row is a card, without the head of the table."""
    style = next(text for text in page.texts if ":root" in text)
    labels = dict(
        re.findall(r"#(\S+ td:nth-child\(\d+\))::before \{ content: \"(.*?)\"; \}", style)
    )
    rows = {table["id"]: 0 for table in page.find("table") if table.get("class") == "list"}
    assert len(rows) == 17
    for name, title in (("inventory", "Owner"), ("moves", "Replicas to copy"), ("skew", "Leaders")):
        assert title in [said for place, said in labels.items() if place.startswith(f"{name} ")]
    heads = sum("data-key" in head for head in page.find("th"))
    assert len(labels) == heads


def test_a_rule_is_a_label_and_never_a_style() -> None:
    rules = make_rows("severity rule findings clusters", ("error", 'x"; } </style><script>', 1, 1))
    made = replace(SAMPLE, tables={**SAMPLE.tables, "rules": rules})
    assert len(Reading(render_page(made)).find("script")) == 1


def test_problems_link_to_their_rows(page: Reading) -> None:
    links = [str(found["href"]) for found in page.find("a")]
    assert "#problems?problem=offline" in links
    assert "#problems?problem=below%20min.insync.replicas" in links
    assert "#brokers-down-title" in links


def test_plans_of_moves_are_listed_with_their_cost(page: Reading) -> None:
    start = page.texts.index("Plans of moves")
    shown = [text.strip() for text in page.texts[start:] if text.strip()]
    assert "2 of 3 clusters, those that copy the most first; 1 left out." in shown
    place = shown.index("340")
    cost = ["7.0 TiB", "1 d 2 h", "84%", "7, 8", "2"]
    assert shown[place - 2 : place + 7] == [HOSTILE, "12", "340", "510", *cost]
    assert "no answer [unreachable]" in shown


def test_an_audit_without_rows_says_so() -> None:
    texts = Reading(render_page(replace(SAMPLE, tables={}))).texts
    assert "This audit counted no next leaders." in texts
    assert texts.count("No finding.") == 3
    assert "Findings by cause" not in texts


HIDDEN = "\u202e\u200b\u2066\u00ad\U000e0041\x9b"
"""Turns what follows around, or is not seen."""


def hide_in(value: Any) -> Any:
    """Put what is not seen into every text of a value that is not ours."""
    if isinstance(value, Enum) or value is None:
        return value
    if isinstance(value, str):
        return value if re.fullmatch(r"\d{8}T\d{6}Z", value) else f"{value}{HIDDEN}x"
    if isinstance(value, tuple | list):
        return type(value)(map(hide_in, value))
    if isinstance(value, Mapping):
        return {key: hide_in(item) for key, item in value.items()}
    if is_dataclass(value):
        parts = {one.name: hide_in(getattr(value, one.name)) for one in fields(value) if one.init}
        return replace(value, **parts)  # type: ignore[type-var]
    return value


def test_what_turns_a_name_around_is_shown() -> None:
    hidden = hide_in(SAMPLE)
    text = render_page(hidden)
    assert {c for c in text if not c.isprintable()} == {"\n"}
    page = Reading(text)
    assert page.texts.count(f"{HOSTILE}\\u202e\\u200b\\u2066\\xad\\U000e0041\\x9bx") >= 5
    assert page.open == []
