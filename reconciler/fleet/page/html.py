"""The HTML page of a fleet, in one file: style, script and pictures are inside it.

Names come from clusters and specs, and may hold anything: every text is escaped, and the page's
content policy runs no script but its own, whose hash it names, and fetches nothing.
"""

from __future__ import annotations

import re
from base64 import b64encode
from collections import Counter
from collections.abc import Iterable, Iterator, Mapping
from hashlib import sha256
from importlib import resources
from typing import TYPE_CHECKING
from urllib.parse import quote

from reconciler.errors import escape_unprintable
from reconciler.fleet.health import Health
from reconciler.fleet.page.contents import (
    BrokerLoad,
    ClusterLine,
    FleetPage,
    Standing,
    say_share,
    say_when,
)
from reconciler.fleet.page.pictures import (
    STYLES,
    describe_bands,
    describe_drift,
    draw_bands,
    draw_broker,
    draw_drift,
    draw_mark,
    draw_sparkline,
    draw_tile,
    say_load,
)
from reconciler.fleet.page.table import Listing, fill_table, say_number
from reconciler.fleet.page.tables import PROBLEMS, TABLES, TREND
from reconciler.model.moves import LoadKind
from reconciler.units import approximate_size, count

if TYPE_CHECKING:
    from jinja2 import Environment
    from markupsafe import Markup

NO_RACK = "no rack"


def render_page(page: FleetPage) -> str:
    """Render the page as HTML. Same fleet, same bytes."""
    script = _read("page.js")
    places = number_clusters(page.clusters.rows)
    lists = {table.name: fill_table(table, page) for table in TABLES}
    style = _read("page.css") + label_cells(lists.values())
    # Names in the page come from clusters. If one got past the escaping, a browser would still run
    # no script but ours, and send no request.
    policy = (
        f"default-src 'none'; style-src '{_hash(style)}'; script-src '{_hash(script)}';"
        " img-src data:; base-uri 'none'; form-action 'none'"
    )
    states = Counter(cluster.state for cluster in page.clusters.rows)
    return (
        _open_templates()
        .get_template("page.html.jinja")
        .render(
            page=page,
            style=_trust(style),
            script=_trust(script),
            policy=policy,
            figures=list(_list_figures(page)),
            tiles=list(_list_problems(page)),
            trends=list(_list_trends(page)),
            states=[(one, states[one]) for one in (*Health, *Standing) if states[one]],
            lists=lists,
            places=places,
            most=max((cluster.partitions for cluster in page.clusters.rows), default=0),
            shown=[cluster for cluster in page.clusters.rows if cluster.brokers],
        )
    )


def number_clusters(clusters: Iterable[ClusterLine]) -> Mapping[str, str]:
    """Return the anchor of each cluster whose brokers are on the page.

    A name can contain any character, so an anchor has a number instead.
    """
    shown = (cluster for cluster in clusters if cluster.brokers)
    return {cluster.name: f"cluster-{number}" for number, cluster in enumerate(shown, 1)}


def _open_templates() -> Environment:
    from jinja2 import Environment, PackageLoader, StrictUndefined

    templates = Environment(
        loader=PackageLoader("reconciler.fleet.page", "."),
        autoescape=True,
        undefined=StrictUndefined,
        finalize=_show_unprintable,
        trim_blocks=True,
        lstrip_blocks=True,
    )
    drawings = (draw_tile, draw_drift, draw_mark, draw_broker, draw_bands)
    templates.globals |= {drawing.__name__: drawing for drawing in drawings}
    templates.globals |= {
        "styles": STYLES,
        "list_racks": list_racks,
        "list_loads": list_loads,
        "say_load": say_load,
        "describe_drift": describe_drift,
        "describe_bands": describe_bands,
    }
    templates.filters |= {
        "when": say_when,
        "count": count,
        "drawn": _trust,
        "size": _say_size,
    }
    return templates


def _show_unprintable(value: object) -> object:
    """Escape what is not seen in a text: it could reverse a name. Markup is our own."""
    return escape_unprintable(value) if type(value) is str else value


def _read(name: str) -> str:
    return resources.files("reconciler.fleet.page").joinpath(name).read_text(encoding="utf-8")


def _trust(markup: str) -> Markup:
    """Mark text as safe: our own files, and pictures, which escape names themselves."""
    from markupsafe import Markup

    return Markup(markup)  # noqa: S704  # nothing comes here that has not been escaped


def _hash(text: str) -> str:
    return "sha256-" + b64encode(sha256(text.encode()).digest()).decode()


def label_cells(listings: Iterable[Listing]) -> str:
    """Return a style by which each cell has the title of its column, on a narrow screen.

    There each row is a card, without the head of the table. Titles of the matrix are rules, and
    come from the lake: every character that is not a letter, a digit or a sign is escaped.
    """
    rules = [
        f'#{one.table.name} td:nth-child({place})::before {{ content: "{_escape(column.title)}"; }}'
        for one in listings
        for place, column in enumerate(one.columns, 1)
    ]
    return "@media (max-width: 40rem) {\n" + "\n".join(rules) + "\n}\n"


def _escape(text: str) -> str:
    """Escape a text for a string of a style sheet."""
    return re.sub(
        r"[^A-Za-z0-9 ._-]", lambda found: f"\\{ord(found[0]):x} ", escape_unprintable(text)
    )


def _list_problems(page: FleetPage) -> Iterator[tuple[int, str, str, str]]:
    """Yield the current problems: number, noun, a remark, and the address of its rows."""
    health, on = page.health, page.health.clusters
    for name, said in PROBLEMS.items():
        number = getattr(health, name)
        remark = f"on {count(on.get(name, 0), 'cluster')}" if number else "none"
        place = "problems" if number else "problems-title"
        query = f"?problem={quote(said)}" if number else ""
        yield number, f"partitions {said}", remark, f"#{place}{query}"
    down = health.brokers_down
    remark = f"on {count(on.get('brokers_down', 0), 'cluster')}" if down else "none"
    yield down, "brokers down", remark, "#brokers-down-title"
    failed = health.directories_offline
    remark = f"on {count(on.get('directories_offline', 0), 'cluster')}" if failed else "none"
    yield failed, "log directories offline", remark, "#brokers-down-title"
    unread = page.totals.clusters - page.totals.read
    remark = "health unknown" if unread else "none"
    yield unread, "clusters unread", remark, "#unreadable-title"


def _list_trends(page: FleetPage) -> Iterator[tuple[str, str, str]]:
    """Yield what has a trend: its noun, the last value, and its picture."""
    trend = page.rows(TREND.name)[::-1]
    if len(trend) < 2:
        return
    nouns = {**PROBLEMS, "brokers_down": "brokers down", "topics": "topics"}
    for name, noun in {**nouns, "partitions": "partitions", "size_bytes": "bytes"}.items():
        say = _say_size if name == "size_bytes" else say_number
        numbers = [point[name] for point in trend]
        yield noun, say(numbers[-1]), draw_sparkline(numbers, noun)


def _say_size(amount: int | None) -> str:
    return "–" if amount is None else approximate_size(amount)


def _list_figures(page: FleetPage) -> Iterator[tuple[str, str, str]]:
    """Yield the headline figures: the number, its noun, and a remark."""
    totals, plan = page.totals, page.totals.plan
    yield f"{totals.read:,}", "clusters read", f"of {totals.clusters:,}"
    yield f"{totals.topics:,}", "topics", f"on {count(totals.brokers, 'broker')}"
    yield f"{totals.partitions:,}", "partitions", ""
    if plan is None:
        yield "–", "changes", "not planned yet"
        return
    yield f"{plan.changed:,}", "changes pending", f"in {count(totals.planned, 'plan')}"
    yield f"{plan.refused:,}", "refused", "reasons below"
    whole = plan.drift + plan.unchanged
    yield say_share(plan.drift, whole), "drift", f"{plan.drift:,} of {count(whole, 'topic')}"
    yield f"{plan.unmanaged:,}", "unmanaged", "live, without a spec"


def list_racks(cluster: ClusterLine) -> list[tuple[str, list[BrokerLoad]]]:
    """Return the racks of a cluster by name, each with its brokers."""
    racks: dict[str, list[BrokerLoad]] = {}
    for broker in cluster.brokers:
        name = NO_RACK if broker.rack is None else broker.rack
        racks.setdefault(name, []).append(broker)
    return list(racks.items())


LOADS: Mapping[str, str] = {LoadKind.DISK: "On disk", LoadKind.WRITE: "Writes"}
"""The loads of the audit, and their titles."""


def list_loads(cluster: ClusterLine) -> list[tuple[str, str, str]]:
    """Return the loads that are known of the brokers of a cluster: name, title, and a remark."""
    found = []
    for load, title in LOADS.items():
        bands = [broker.bands[load] for broker in cluster.brokers if load in broker.bands]
        if bands:
            aimed = any(band.aimed for band in bands)
            found.append((load, title, "" if aimed else f"balance.by does not name {load}"))
    return found
