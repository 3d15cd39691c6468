"""The HTML page of a fleet, in one file: style, script and pictures are inside it.

Names come from clusters and specs, and may hold anything: every text is escaped, and the page's
content policy runs no script but its own, whose hash it names, and fetches nothing.
"""

from __future__ import annotations

from base64 import b64encode
from collections import Counter
from hashlib import sha256
from importlib import resources
from typing import TYPE_CHECKING

from reconciler.fleet.page.contents import Standing, say_share, say_when
from reconciler.fleet.page.listing import Listings, number_clusters
from reconciler.fleet.page.pictures import (
    STYLES,
    describe_drift,
    draw_broker,
    draw_drift,
    draw_mark,
    draw_tile,
)
from reconciler.units import count

if TYPE_CHECKING:
    from collections.abc import Iterator

    from jinja2 import Environment
    from markupsafe import Markup

    from reconciler.fleet.page.contents import BrokerLoad, ClusterLine, FleetPage

NO_RACK = "no rack"


def render_page(page: FleetPage) -> str:
    """Render the page as HTML. Same fleet, same bytes."""
    style, script = _read("page.css"), _read("page.js")
    places = number_clusters(page.clusters.rows)
    # Names in the page come from clusters. If one got past the escaping, a browser would still run
    # no script but ours, and send no request.
    policy = (
        f"default-src 'none'; style-src '{_hash(style)}'; script-src '{_hash(script)}';"
        " img-src data:; base-uri 'none'; form-action 'none'"
    )
    standings = Counter(cluster.standing for cluster in page.clusters.rows)
    return (
        _open_templates()
        .get_template("page.html.jinja")
        .render(
            page=page,
            style=_trust(style),
            script=_trust(script),
            policy=policy,
            figures=list(_list_figures(page)),
            standings=[(one, standings[one]) for one in Standing if standings[one]],
            lists=Listings(page, places),
            places=places,
            most=max((cluster.partitions for cluster in page.clusters.rows), default=0),
            shown=[cluster for cluster in page.clusters.rows if cluster.brokers],
        )
    )


def _open_templates() -> Environment:
    from jinja2 import Environment, PackageLoader, StrictUndefined

    templates = Environment(
        loader=PackageLoader("reconciler.fleet.page", "."),
        autoescape=True,
        undefined=StrictUndefined,
        trim_blocks=True,
        lstrip_blocks=True,
    )
    drawings = (draw_tile, draw_drift, draw_mark, draw_broker)
    templates.globals |= {drawing.__name__: drawing for drawing in drawings}
    templates.globals |= {
        "styles": STYLES,
        "list_racks": list_racks,
        "describe_drift": describe_drift,
    }
    templates.filters |= {"when": say_when, "count": count, "drawn": _trust}
    return templates


def _read(name: str) -> str:
    return resources.files("reconciler.fleet.page").joinpath(name).read_text(encoding="utf-8")


def _trust(markup: str) -> Markup:
    """Mark text as safe: our own files, and pictures, which escape names themselves."""
    from markupsafe import Markup

    return Markup(markup)  # noqa: S704  # nothing comes here that has not been escaped


def _hash(text: str) -> str:
    return "sha256-" + b64encode(sha256(text.encode()).digest()).decode()


def _list_figures(page: FleetPage) -> Iterator[tuple[str, str, str]]:
    """Yield the headline figures: the number, its noun, and a remark."""
    totals, plan = page.totals, page.totals.plan
    unreadable = totals.clusters - totals.read
    yield f"{totals.read:,}", "clusters read", f"{unreadable:,} unreadable"
    yield f"{totals.topics:,}", "topics", f"on {count(totals.brokers, 'broker')}"
    yield f"{totals.partitions:,}", "partitions", ""
    if plan is None:
        yield "–", "changes", "not planned yet"
        return
    yield f"{plan.changed:,}", "changes pending", f"in {count(totals.planned, 'plan')}"
    yield f"{plan.refused:,}", "refused", "with reasons below"
    whole = plan.drift + plan.unchanged
    yield say_share(plan.drift, whole), "drift", f"{plan.drift:,} of {count(whole, 'topic')}"
    yield f"{plan.unmanaged:,}", "unmanaged", "live, and in no spec"


def list_racks(cluster: ClusterLine) -> list[tuple[str, list[BrokerLoad]]]:
    """Return the racks of a cluster by name, each with its brokers."""
    racks: dict[str, list[BrokerLoad]] = {}
    for broker in cluster.brokers:
        name = NO_RACK if broker.rack is None else broker.rack
        racks.setdefault(name, []).append(broker)
    return list(racks.items())
