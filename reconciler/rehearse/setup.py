"""The setup of a rehearsal: brokers and topics as on the cluster that the plan is for."""

from __future__ import annotations

from collections.abc import Collection, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace

from reconciler.diff.fields import managed_overrides
from reconciler.errors import Finding, Severity
from reconciler.model.cluster import EMPTY, Broker, ClusterState, is_left_to_brokers
from reconciler.model.plan import Plan, TopicImage
from reconciler.model.steps import steps_of
from reconciler.spec.catalogue import parse_version, spell_line
from reconciler.spec.configs import choose_catalogue
from reconciler.units import name_each

MOST_REPLICAS = 10_000
"""The limit of replicas up to which every live topic is set up, not only the planned ones: 20 s."""

_CORDONING_SINCE = (4, 3)  # KIP-1066
_TIER = "remote.storage.enable"
_OTHER_UNITS = (".minutes", ".hours")


@dataclass(frozen=True, slots=True)
class Setup:
    """The setup that a rehearsal of a plan needs.

    All of `brokers` are started, for the dead ones hold replicas too; then `dead` ones are
    stopped and `cordoned` ones cordoned. `topics` holds what to create, by name; `left_out`, why
    others cannot be. `complete`: every live topic is in one of the two. `properties` are the
    brokers' own settings that topics rest on; `tiered` asks for a controller that takes tiered
    topics.
    """

    brokers: tuple[Broker, ...]
    topics: Mapping[str, TopicImage]
    complete: bool
    dead: tuple[int, ...] = ()
    cordoned: tuple[int, ...] = ()
    left_out: Mapping[str, str] = field(default_factory=lambda: EMPTY)
    properties: Mapping[str, str] = field(default_factory=lambda: EMPTY)
    tiered: bool = False
    notes: tuple[Finding, ...] = ()

    @property
    def replicas(self) -> int:
        """How many replicas the topics have together."""
        return count_replicas(self.topics.values())


def prepare_setup(plan: Plan, state: ClusterState | None, kafka_version: str) -> Setup:
    """Make the setup of a plan: from a state, or from the plan itself.

    With a state of up to `MOST_REPLICAS`, every live topic is part of it, so that the balance is
    the real one. Otherwise only the topics of the plan are.
    """
    known = choose_catalogue(kafka_version).keys
    planned = {t.name: t.before for t in keep_known(plan, kafka_version).topics if t.before}
    live = _list_images(state, known) if state else planned
    complete = state is not None and _count_after(plan, live) <= MOST_REPLICAS
    images = live if complete else {n: image for n, image in live.items() if n in planned}
    left_out = {name: why for name, image in images.items() if (why := _cannot_create(image))}
    topics = {name: image for name, image in images.items() if name not in left_out}
    nodes = _complete_brokers(state.brokers if state else plan.brokers, topics.values())
    can_cordon = parse_version(kafka_version) >= _CORDONING_SINCE
    cordoned = tuple(node.id for node in nodes if node.cordoned and node.alive)
    return Setup(
        brokers=tuple(replace(node, alive=True, cordoned=False) for node in nodes),
        topics=topics,
        complete=complete,
        dead=tuple(node.id for node in nodes if not node.alive),
        cordoned=cordoned if can_cordon else (),
        left_out=left_out,
        properties=dict(_list_properties(state, kafka_version)) if state else {},
        tiered=any(image.config.get(_TIER) == "true" for image in live.values()),
        notes=(
            *_note_limits(plan, state, complete=complete, cordoned=cordoned, able=can_cordon),
            *_note_foreign(plan, state, known, kafka_version),
        ),
    )


def keep_known(plan: Plan, kafka_version: str) -> Plan:
    """Return a plan without the configs that no broker of Apache Kafka of a version takes."""
    known = choose_catalogue(kafka_version).keys

    def keep(image: TopicImage | None) -> TopicImage | None:
        if image is None or image.config.keys() <= known.keys():
            return image
        config = {key: value for key, value in image.config.items() if key in known}
        return replace(image, config=config)

    topics = (replace(t, before=keep(t.before), after=keep(t.after)) for t in plan.topics)
    return replace(plan, topics=tuple(topics))


def count_replicas(images: Iterable[TopicImage]) -> int:
    """Count the replicas of topics."""
    return sum(len(row) for image in images for row in image.assignment)


def count_added(plan: Plan) -> int:
    """Count the replicas that a plan adds."""
    changed = [topic for topic in plan.topics if steps_of(topic)]
    after = count_replicas(topic.after for topic in changed if topic.after)
    return after - count_replicas(topic.before for topic in changed if topic.before and topic.after)


def _count_after(plan: Plan, live: Mapping[str, TopicImage]) -> int:
    return count_replicas(live.values()) + count_added(plan)


def _list_images(state: ClusterState, known: Collection[str]) -> dict[str, TopicImage]:
    images = {}
    for name, topic in sorted(state.topics.items()):
        config = {key: v for key, v in managed_overrides(topic).items() if key in known}
        images[name] = TopicImage(topic.topic_id, topic.assignment, config)
    return images


def _cannot_create(image: TopicImage) -> str:
    """Return why no request creates a topic as it is, if none does."""
    # CreateTopics refuses rows of different lengths (INVALID_REPLICA_ASSIGNMENT). Only
    # reassignments lead to such a topic.
    factors = sorted({len(row) for row in image.assignment})
    if len(factors) > 1:
        listed = " and ".join(map(str, factors))
        return f"its partitions have {listed} replicas, and brokers do not create such a topic"
    return ""


def _complete_brokers(
    brokers: Iterable[Broker], images: Iterable[TopicImage]
) -> tuple[Broker, ...]:
    """Add the brokers that only replica lists name: they are dead or removed."""
    known = {broker.id: broker for broker in brokers}
    named = {broker for image in images for row in image.assignment for broker in row}
    gone = {broker: Broker(broker, alive=False) for broker in named - known.keys()}
    return tuple(sorted({**known, **gone}.values(), key=lambda broker: broker.id))


def _list_properties(state: ClusterState, kafka_version: str) -> Iterator[tuple[str, str]]:
    """Yield the brokers' own settings that differ from Kafka's, by the names brokers have."""
    release = choose_catalogue(kafka_version)
    for key, value in sorted(state.config_defaults.items()):
        if key not in release.keys or release.same(key, release.default(key), value):
            continue
        # The state has values in the topic's unit, which log.retention.hours does not take.
        names = release.keys[key].synonyms
        same_unit = [name for name in names if not name.endswith(_OTHER_UNITS)]
        yield from ((name, value) for name in same_unit[:1])


def _note_limits(
    plan: Plan, state: ClusterState | None, *, complete: bool, cordoned: tuple[int, ...], able: bool
) -> Iterator[Finding]:
    """Return the differences between the setup and the real cluster."""
    if state is None:
        what = "the plan contains only its own topics, so balance is measured over these"
        yield _note(what, "rehearse it --against a snapshot of the cluster for all of them")
    elif not complete:
        replicas = _count_after(plan, _list_images(state, ()))
        what = (
            f"{replicas:,} replicas are more than the {MOST_REPLICAS:,} that are set up, so only "
            "the plan's own topics are, and balance is measured over these"
        )
        yield _note(what, "`reconciler simulate` measures all of them, without brokers")
    after = (topic.after.assignment for topic in plan.topics if steps_of(topic) and topic.after)
    if any(map(is_left_to_brokers, after)):
        what = "the brokers place replicas, and those of another service may place them elsewhere"
        yield _note(what, "only counts and configs are compared")
    if cordoned and not able:
        are = "is" if len(cordoned) == 1 else "are"
        what = f"{name_each('broker', cordoned)} {are} cordoned, which this Kafka release lacks"
        yield _note(what, "rehearse on Kafka 4.3 or newer")


def _note_foreign(
    plan: Plan, state: ClusterState | None, known: Collection[str], kafka_version: str
) -> Iterator[Finding]:
    """Return a note on the configs that are not rehearsed."""
    images = [image for topic in plan.topics for image in (topic.before, topic.after) if image]
    configs = [image.config for image in images]
    configs += [managed_overrides(topic) for topic in state.topics.values()] if state else []
    foreign = sorted({key for config in configs for key in config if key not in known})
    if foreign:
        what = f"not rehearsed, since Kafka {kafka_version} has no such configs: "
        yield _note(what + ", ".join(foreign), "")


def _note(what: str, way_out: str) -> Finding:
    return Finding("rehearsal-differs", what, way_out, severity=Severity.NOTE)


def choose_release(wanted: str | None, known: Sequence[str]) -> tuple[str, tuple[Finding, ...]]:
    """Choose the release for a cluster's version or line, and say so if it is another one.

    In: `known`, oldest first. Returns the newest one of the line, else of the lines before it,
    else the oldest; the newest of all if nothing is wanted.
    """
    if wanted is None:
        what = f"the cluster's Kafka release is unknown; rehearsed on {known[-1]}"
        return known[-1], (_note(what, "write kafka_version in clusters.yaml, or pass --kafka"),)
    if wanted in known:
        return wanted, ()
    line = parse_version(wanted)
    before = [release for release in known if parse_version(release) <= line]
    release = before[-1] if before else known[0]
    if wanted == spell_line(line) == spell_line(parse_version(release)):
        return release, ()
    what = f"the cluster runs Kafka {wanted}, which is not available; rehearsed on {release}"
    return release, (_note(what, "name another with --kafka"),)
