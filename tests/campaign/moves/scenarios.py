"""Single moves under traffic, and what disturbs each: `SCENARIOS` by name.

A scenario gets a world whose topics `big`, `middle` and `small` hold data. It plans, applies and
disturbs; what must be true afterwards, `play` checks for all of them alike.
"""

from __future__ import annotations

import os
import signal
import time
from collections import Counter
from collections.abc import Callable, Iterator, Mapping
from subprocess import Popen
from typing import TYPE_CHECKING, Any

from breakable import freeze_node, kill_node, thaw_node
from confluent_kafka.admin import AdminClient
from kafka import TopicPartition
from kafka.admin import KafkaAdminClient

from campaign.moves.traffic import Traffic
from campaign.moves.world import MIB, SIZES, Ran, planned_rows
from reconciler.kafka.moves import MovesReader
from reconciler.kafka.reader import KafkaReader
from reconciler.model.cluster import Assignment, Reassignment, Replicas, ThrottleSide
from reconciler.model.moves import UNLIMITED, DefaultRate

if TYPE_CHECKING:
    from campaign.moves.traffic import Verdict
    from campaign.moves.world import World

    Rows = Mapping[str, Assignment]

BYTES_S = 60.0


def play(world: World, name: str, *, per_s: float = 8) -> Verdict:
    """Play a scenario from new topics to the last check. Errors: AssertionError: what is wrong."""
    factor, config, run = SCENARIOS[name]
    world.topics.clear()
    prefix = name.replace("_", "-")
    for topic, (partitions, mib) in SIZES.items():
        full = f"{prefix}.{topic}"
        world.create(full, spread(partitions, factor), **config)
        world.fill(full, mib)
    traffic = Traffic(
        world.cluster.bootstrap_servers,
        {name: spec["partitions"] for name, spec in world.topics.items()},
        per_s,
    )
    traffic.start()
    try:
        wanted = run(world)
        world.await_end(wanted)
    finally:
        verdict = traffic.stop()
    assert not verdict.faults, [*verdict.faults, *world.explain(verdict)]
    assert not (left := world.list_leftovers()), left
    assert not (wrong := world.list_wrong_leaders()), wrong
    return verdict


def spread(partitions: int, factor: int) -> list[list[int]]:
    """Return rows over six brokers whose neighbours are in other racks."""
    return [[(p + r) % 6 + 1 for r in range(factor)] for p in range(partitions)]


def resize(world: World, factor: int) -> Rows:
    """Plan another replication factor for all topics. Returns the planned rows."""
    for spec in world.topics.values():
        spec["replication_factor"] = factor
    return planned_rows(world.plan())


def assign(world: World, change: Callable[[tuple[int, ...]], list[int]]) -> Rows:
    """Plan manual rows for all topics. Returns the planned rows."""
    for name, topic in world.show().items():
        world.topics[name]["assignment"] = {
            number: change(row) for number, row in enumerate(topic.assignment)
        }
    return planned_rows(world.plan())


def expect(ran: Ran, *codes: int) -> Ran:
    assert ran.code in codes, ran
    return ran


def end(process: Popen[str], *codes: int) -> Ran:
    """Wait for a command that was started."""
    out, err = process.communicate(timeout=900)
    return expect(Ran(process.returncode, out, err), *codes)


def await_copying(world: World, process: Popen[str], topic: str | None = None) -> None:
    """Wait until a run has replicas in flight: any, or those of a topic."""
    deadline = time.monotonic() + BYTES_S
    while not any(topic in (None, each.topic) for each in world.read_moves().reassignments):
        assert process.poll() is None, process.communicate()
        assert time.monotonic() < deadline, "nothing is in flight"
        time.sleep(0.2)


def await_out_of_sync(world: World, broker: int) -> None:
    """Wait until the cluster has noticed that a broker is dead."""
    deadline = time.monotonic() + BYTES_S
    while any(broker in row for topic in world.show().values() for row in topic.in_sync):
        assert time.monotonic() < deadline, "the cluster does not notice"
        time.sleep(1)


def grow(world: World) -> Rows:
    rows = resize(world, 3)
    expect(world.apply(), 0)
    return rows


def shrink_off_a_dead_broker(world: World) -> Rows:
    kill_node(world.cluster, 6)
    await_out_of_sync(world, 6)
    rows = resize(world, 2)
    assert not any(6 in row for assignment in rows.values() for row in assignment)
    expect(world.apply(), 0)
    world.cluster.start_broker(6)
    return rows


def reverse(world: World) -> Rows:
    rows = assign(world, lambda row: list(reversed(row)))
    expect(world.apply(), 0)
    return rows


def shift(world: World) -> Rows:
    rows = assign(world, lambda row: [(broker + 1) % 6 + 1 for broker in row])
    expect(world.apply(), 0)
    return rows


def lose_a_destination(world: World) -> Rows:
    return lose(world, lambda move: move.adding[0])


def lose_a_source(world: World) -> Rows:
    return lose(world, lambda move: move.leader)


def lose(world: World, choose: Callable[[Reassignment], int | None]) -> Rows:
    """Kill a broker of a move in flight, and start it again."""
    rows = resize(world, 3)
    process = world.start_apply()
    await_copying(world, process)
    broker = choose(world.read_moves().reassignments[0])
    assert broker is not None
    kill_node(world.cluster, broker)
    time.sleep(20)
    world.cluster.start_broker(broker)
    end(process, 0)
    return rows


def freeze_the_controller(world: World) -> Rows:
    rows = resize(world, 3)
    process = world.start_apply()
    await_copying(world, process)
    (controller,) = [each.id for each in world.cluster.controller_statuses()]
    freeze_node(world.cluster, controller)
    time.sleep(25)
    thaw_node(world.cluster, controller)
    end(process, 0)
    return rows


def wait_for_a_foreign_move(world: World) -> Rows:
    """Another tool adds a replica on a broker that is down: it is in flight until that returns."""
    world.create("foreign", [[1, 2]])
    world.fill("foreign", 5)
    foreign = world.topics.pop("foreign")
    assert foreign
    rows = resize(world, 3)
    world.cluster.stop_broker(6)
    reassign(world, "foreign", [1, 2, 6])
    process = world.start_apply()
    time.sleep(20)
    assert process.poll() is None, process.communicate()
    in_flight = [each.topic for each in world.read_moves().reassignments]
    assert in_flight == ["foreign"], in_flight
    world.cluster.start_broker(6)
    end(process, 0)
    return rows


def find_leftovers(world: World) -> Rows:
    """Another tool left a rate and lists: nothing is done, and a person removes them by name."""
    rows = resize(world, 3)
    topic = next(iter(world.topics))
    alter(world, TOPIC, topic, dict.fromkeys(LISTS, "*"))
    alter(world, BROKER, "", dict.fromkeys(RATES, str(8 * MIB)))
    refused = expect(world.apply(), 1)
    assert "[moves-rate-taken]" in refused.err + refused.out, refused
    settled = expect(
        world.run("moves", "settle", "topics", "--cluster", "lab", "--auto-approve"), 2
    )
    assert "Not set by reconciler" in settled.out, settled
    assert not world.read_moves().reassignments
    unthrottle(world, "--topic", topic, "--default")
    expect(world.apply(), 0)
    return rows


def unthrottle(world: World, *named: str) -> None:
    where = ("topics", "--cluster", "lab", "--auto-approve")
    expect(world.run("moves", "unthrottle", *where, *named), 0)


def leave_a_list_elsewhere(world: World) -> Rows:
    """Another tool leaves a list of * on a topic of no file, before the plan and in the middle."""
    world.create("foreign", [[1, 2]])
    del world.topics["foreign"]
    alter(world, TOPIC, "foreign", dict.fromkeys(LISTS, "*"))
    left = "throttle list of * is left on foreign"
    for spec in world.topics.values():
        spec["replication_factor"] = 3
    refused = expect(world.run_plan("--moves", "--out", "moves.json"), 1)
    assert left in unfold(refused), refused
    unthrottle(world, "--topic", "foreign")
    process, rows = start_slowly(world)
    alter(world, TOPIC, "foreign", dict.fromkeys(LISTS, "*"))
    await_idle(world, process)
    deadline = time.monotonic() + BYTES_S
    while world.read_moves().rates:
        assert time.monotonic() < deadline, "the rate stays, and slows the other topic"
        time.sleep(1)
    unthrottle(world, "--topic", "foreign")
    assert left in unfold(end(process, 0))
    return rows


def keep_a_permanent_rate(world: World) -> Rows:
    """An operator's own default equals the plan's: a kill, a second run and settle leave it."""
    kept = DefaultRate(4 * MIB, 4 * MIB)
    alter(world, BROKER, "", dict.fromkeys(RATES, str(4 * MIB)))
    rows = resize(world, 3)
    process = world.start_apply()
    await_copying(world, process)
    process.kill()
    process.communicate()
    assert world.read_moves().default_rate == kept
    expect(world.apply(), 0)
    assert world.read_moves().default_rate == kept
    expect(world.run("moves", "settle", "topics", "--cluster", "lab", "--auto-approve"), 0)
    assert world.read_moves().default_rate == kept
    unthrottle(world, "--default")
    return rows


def override_the_rate(world: World) -> Rows:
    """Another tool sets a rate of one broker in the middle, above the plan's."""
    process, rows = start_slowly(world)
    alter(world, BROKER, "3", dict.fromkeys(RATES, str(64 * MIB)))
    await_idle(world, process)
    time.sleep(10)
    assert process.poll() is None, process.communicate()
    assert not world.read_moves().reassignments, "something begins at another rate"
    unthrottle(world, "--broker", "3")
    said = unfold(end(process, 0))
    assert "broker 3 has its own" in said, said
    assert "reconciler moves unthrottle --broker 3" in said, said
    return rows


def take_the_limit_away(world: World) -> Rows:
    """The run keeps to `moves rate unlimited`."""
    process, rows = start_slowly(world)
    where = ("topics", "--cluster", "lab", "--auto-approve")
    expect(world.run("moves", "rate", "unlimited", *where), 0)
    shown = set()
    while process.poll() is None:
        default = world.read_moves().default_rate
        shown.add(default and default.bytes_per_s)
        time.sleep(0.5)
    assert shown <= {UNLIMITED, None}, shown
    end(process, 0)
    return rows


def start_slowly(world: World) -> tuple[Popen[str], Rows]:
    """Apply a plan of which most waits while a part is in flight."""
    world.moves["at_once"] = {"cluster": 2, "broker": 1}
    rows = resize(world, 3)
    process = world.start_apply()
    await_copying(world, process)
    return process, rows


def await_idle(world: World, process: Popen[str]) -> None:
    """Wait until what is in flight has ended, and nothing else has begun."""
    deadline = time.monotonic() + 4 * BYTES_S
    while world.read_moves().reassignments:
        assert process.poll() is None, process.communicate()
        assert time.monotonic() < deadline, "more and more begins"
        time.sleep(1)


def unfold(ran: Ran) -> str:
    """Return all that a command said, without its line ends."""
    return " ".join((ran.out + " " + ran.err).split())


def kill(world: World) -> Rows:
    rows = resize(world, 3)
    process = world.start_apply()
    await_copying(world, process)
    process.kill()
    process.communicate()
    expect(world.apply(), 0)
    return rows


def interrupt(world: World) -> Rows:
    rows = resize(world, 3)
    process = world.start_apply()
    await_copying(world, process)
    os.kill(process.pid, signal.SIGINT)
    end(process, 2, 130)
    expect(world.apply(), 0)
    return rows


def stop_and_continue(world: World) -> Rows:
    rows = resize(world, 3)
    expect(world.apply("--stop-after", "15s"), 2)
    runs = 1
    while expect(world.apply("--stop-after", "30s"), 0, 2).code:
        runs += 1
        assert runs < 20, "it does not get on"
    return rows


def cancel(world: World) -> Rows:
    """Rows that were cancelled are as before, others as planned; the run says so and ends."""
    before = {name: topic.assignment for name, topic in world.show().items()}
    rows = resize(world, 3)
    process = world.start_apply()
    await_copying(world, process)
    expect(
        world.run(
            "moves",
            "cancel",
            "topics",
            "--cluster",
            "lab",
            "--plan",
            "moves.json",
            "--auto-approve",
        ),
        0,
    )
    end(process, 1, 2)
    expect(world.run("moves", "settle", "topics", "--cluster", "lab", "--auto-approve"), 0)
    found = {name: topic.assignment for name, topic in world.show().items()}
    for name, assignment in found.items():
        for number, row in enumerate(assignment):
            assert row in (before[name][number], rows[name][number]), (name, number, row)
    assert any(found[name] != rows[name] for name in rows), "nothing was cancelled"
    for name, spec in world.topics.items():
        spec.pop("replication_factor")
        spec["assignment"] = dict(enumerate(map(list, found[name])))
    return found


def pause_and_resume(world: World) -> Rows:
    rows = resize(world, 3)
    process = world.start_apply()
    await_copying(world, process)
    where = ("topics", "--cluster", "lab", "--auto-approve")
    expect(world.run("moves", "pause", *where), 0)
    time.sleep(15)
    assert process.poll() is None, process.communicate()
    assert world.read_moves().reassignments
    expect(world.run("moves", "rate", "16MiB", *where), 0)
    end(process, 0)
    return rows


DRAINED = 6
UNMANAGED = "unmanaged"
"""A topic that no file names."""

OFFSETS = "__consumer_offsets"


def start_drain(world: World) -> Rows:
    """Plan to drain a broker that holds managed, unmanaged and internal topics."""
    add_unmanaged(world, [[DRAINED, 1], [1, 2], [5, DRAINED]], 15)
    return plan_drain(world, DRAINED)


def add_unmanaged(world: World, rows: list[list[int]], mib: float) -> None:
    world.create(UNMANAGED, rows)
    world.fill(UNMANAGED, mib)
    del world.topics[UNMANAGED]


def find_holders(world: World) -> list[int]:
    """Return the brokers that hold both an unmanaged and an internal topic, once these exist."""
    deadline = time.monotonic() + BYTES_S
    while OFFSETS not in world.read_moves().partitions:
        assert time.monotonic() < deadline, "the consumer has committed nothing"
        time.sleep(1)
    shown = world.read_moves().partitions
    held = [{b for each in shown[name] for b in each.replicas} for name in (UNMANAGED, OFFSETS)]
    return sorted(set.intersection(*held))


def plan_drain(world: World, broker: int) -> Rows:
    """Plan to drain a broker that holds an unmanaged and an internal topic."""
    assert broker in find_holders(world)
    world.drained = [broker]
    rows = planned_rows(world.plan())
    assert {UNMANAGED, OFFSETS} < rows.keys(), rows.keys()
    assert not any(broker in row for assignment in rows.values() for row in assignment), rows
    return rows


def check_empty(world: World, broker: int, ran: Ran) -> None:
    """Check that a run says that a broker is empty, that it is, and that it alone is cordoned.

    Before Kafka 4.3 no broker is.
    """
    assert f"broker {broker} is empty" in ran.out, ran
    assert (held := MovesReader(world.connection).read_stored(broker)) == frozenset(), held
    wanted = [broker] if can_cordon(world) else []
    assert (cordoned := list_cordoned(world)) == wanted, cordoned


def can_cordon(world: World) -> bool:
    return KafkaReader(world.connection).read_cluster(config_of=()).can_cordon


def list_cordoned(world: World) -> list[int]:
    return [each.id for each in world.read_moves().brokers if each.cordoned]


def uncordon(world: World, broker: int) -> None:
    """Let a broker take replicas again, as a person does it, and wait until all of them show it."""
    alter(world, BROKER, str(broker), {"cordoned.log.dirs": None})
    deadline = time.monotonic() + BYTES_S
    while list_cordoned(world):
        assert time.monotonic() < deadline, "the broker stays cordoned"
        time.sleep(1)


def drain(world: World) -> Rows:
    rows = start_drain(world)
    check_empty(world, DRAINED, expect(world.apply(), 0))
    again = world.plan()
    assert planned_rows(again) == {}
    assert [each["cordon"] for each in again["moves"]["drains"]] == [False]
    assert "drain-done" in {each["rule"] for each in again["notes"]}, again["notes"]
    expect(world.run_plan("--moves", "--detailed-exitcode"), 0)
    return rows


def drain_too_many(world: World) -> Rows:
    """Two brokers are left for rows of three replicas: nothing moves, and nothing is cordoned."""
    world.drained = [3, 4, 5, 6]
    refused = expect(world.run_plan("--moves", "--out", "moves.json"), 1)
    assert "[drain-impossible]" in refused.out + refused.err, refused
    expect(world.apply(), 1)
    assert not list_cordoned(world)
    return {name: topic.assignment for name, topic in world.show().items()}


def drain_a_dead_broker(world: World) -> Rows:
    kill_node(world.cluster, DRAINED)
    await_out_of_sync(world, DRAINED)
    rows = start_drain(world)
    ran = expect(world.apply(), 0)
    assert f"broker {DRAINED} holds no replica" in ran.out + ran.err, ran
    world.cluster.start_broker(DRAINED)
    assert not list_cordoned(world)
    return rows


def drain_and_change_meanwhile(world: World) -> Rows:
    """Other changes are planned and applied while a drain is under way, and do not disturb it."""
    rows = start_drain(world)
    expect(world.apply("--stop-after", "15s"), 2)
    for spec in world.topics.values():
        spec["config"]["retention.ms"] = "86400000"
        spec["acknowledge"] = ["data-loss"]
    expect(world.run_plan("--out", "changes.json"), 0)
    process = world.start_apply("--stop-after", "60s")
    expect(world.apply_file("changes.json", "--lock-timeout", "5m"), 0)
    ran = end(process, 0, 2)
    runs = 1
    while ran.code:
        ran = expect(world.apply("--stop-after", "60s"), 0, 2)
        runs += 1
        assert runs < 20, "it does not get on"
    check_empty(world, DRAINED, ran)
    for name, topic in world.show().items():
        assert topic.config["retention.ms"] == "86400000", name
    return rows


def drain_while_another_broker_dies(world: World) -> Rows:
    rows = start_drain(world)
    process = world.start_apply()
    await_copying(world, process)
    moving = world.read_moves().reassignments
    busy = {b for each in moving for b in (DRAINED, each.leader, *each.adding)}
    broker = min(set(range(1, 7)) - busy, default=1)
    kill_node(world.cluster, broker)
    time.sleep(20)
    world.cluster.start_broker(broker)
    check_empty(world, DRAINED, end(process, 0))
    changed = list_changed(world.read_plan())
    wrong = [each for each in world.list_wrong_leaders() if each.partition(" ")[0] in changed]
    assert not wrong, wrong
    # The run elects leaders of its own rows only.
    expect(world.run("elect", "topics", "--cluster", "lab", "--out", "elections.json"), 0)
    expect(world.apply_file("elections.json"), 0)
    return rows


def list_changed(document: Mapping[str, Any]) -> set[str]:
    """Name the partitions that a plan changes, as `list_wrong_leaders` does."""
    images = {each["name"]: each["change"] for each in document["resource_changes"]}
    return {
        f"{name}-{number}"
        for name, image in images.items()
        for number, (old, new) in enumerate(
            zip(image["before"]["assignment"], image["after"]["assignment"], strict=True)
        )
        if old != new
    }


def drain_and_delete_a_topic(world: World) -> Rows:
    """A topic of the plan is deleted while its replicas are copied; all others are drained."""
    rows = dict(start_drain(world))
    process = world.start_apply()
    await_copying(world, process, UNMANAGED)
    admin = AdminClient({"bootstrap.servers": world.cluster.bootstrap_servers, "log_level": 0})
    admin.delete_topics([UNMANAGED])[UNMANAGED].result(60)
    del rows[UNMANAGED]
    check_empty(world, DRAINED, end(process, 0, 1))  # 0 if its copies have ended a moment before
    assert planned_rows(world.plan()) == {}
    return rows


def drain_a_broker_that_dies(world: World) -> Rows:
    """The drained broker dies while replicas are copied, and stays dead until the run has ended."""
    world.moves["at_once"] = {"cluster": 2, "broker": 1}
    rows = start_drain(world)
    process = world.start_apply()
    await_copying(world, process)
    kill_node(world.cluster, DRAINED)
    ran = end(process, 0)
    assert f"broker {DRAINED} is empty" in ran.out, ran
    world.cluster.start_broker(DRAINED)
    return rows


def move_away_what_an_earlier_run_finished(world: World) -> Rows:
    """A run finishes rows and is killed; during the next one, another tool moves one of them."""
    world.moves["at_once"] = {"cluster": 2, "broker": 1}
    before = {name: topic.assignment for name, topic in world.show().items()}
    rows = dict(resize(world, 3))
    process = world.start_apply()
    name, number = await_finished(world, process, rows)
    process.kill()
    process.communicate()
    settle(world)
    process = world.start_apply()
    await_copying(world, process)
    reassign_one(world, name, number, before[name][number])
    ran = end(process, 1)
    said = f"partition {number}: it was as planned, and another tool or run moved it"
    assert said in " ".join(ran.out.split()), ran
    taken = rows[name]
    row = before[name][number]
    rows[name] = (*taken[:number], row, *taken[number + 1 :])
    world.topics[name].pop("replication_factor")
    world.topics[name]["assignment"] = dict(enumerate(map(list, rows[name])))
    return rows


def await_finished(world: World, process: Popen[str], rows: Rows) -> tuple[str, int]:
    """Wait until a run has finished a row, while others are in flight. Returns: its partition."""
    deadline = time.monotonic() + 4 * BYTES_S
    while True:
        reading = world.read_moves()
        moving = {(each.topic, each.partition) for each in reading.reassignments}
        done = [
            (name, number)
            for name, planned in rows.items()
            for number, row in enumerate(planned)
            if reading.partitions[name][number].replicas == row and (name, number) not in moving
        ]
        if done and moving:
            return done[0]
        assert process.poll() is None, process.communicate()
        assert time.monotonic() < deadline, "no row is finished while others are in flight"
        time.sleep(0.2)


def settle(world: World) -> None:
    """Wait until what a killed run has left in flight has ended."""
    deadline = time.monotonic() + 4 * BYTES_S
    while world.read_moves().reassignments:
        assert time.monotonic() < deadline, "what a killed run left does not end"
        time.sleep(1)


def create_a_topic_again(world: World) -> Rows:
    """A topic of the plan, without traffic, is deleted and created again while it is copied."""
    world.moves["at_once"] = {"cluster": 2, "broker": 1}
    world.create(AGAIN, [[1, 2], [3, 4], [5, 6]])
    world.fill(AGAIN, 40)
    rows = dict(resize(world, 3))
    process = world.start_apply()
    await_copying(world, process, AGAIN)
    admin = AdminClient({"bootstrap.servers": world.cluster.bootstrap_servers, "log_level": 0})
    admin.delete_topics([AGAIN])[AGAIN].result(60)
    del world.topics[AGAIN], rows[AGAIN]
    await_gone(world, AGAIN)
    made = [[1, 2], [4, 3], [2, 6]]
    world.create(AGAIN, made)
    deleted_s = time.monotonic()
    ran = end(process, 1)
    assert "it was deleted and created again" in " ".join(ran.out.split()), ran
    assert "to continue:" not in ran.out, ran
    shown = world.show()[AGAIN]
    assert [list(row) for row in shown.assignment] == made, shown
    assert not any(key.endswith(".throttled.replicas") for key in shown.config), shown.config
    print(f"the run ended {time.monotonic() - deleted_s:.0f} s after the deletion", flush=True)
    return rows


AGAIN = "again"
"""A topic that is not among those of the traffic."""


def await_gone(world: World, topic: str) -> None:
    """Wait until no broker shows a topic."""
    deadline = time.monotonic() + BYTES_S
    reader = KafkaReader(world.connection)
    while any(topic in view for view in reader.read_views([topic]).values()):
        assert time.monotonic() < deadline, f"{topic} is still there"
        time.sleep(0.2)


JOINED = (5, 6)


def use_brokers_that_joined(world: World) -> Rows:
    return rebalance(world, "--brokers", ",".join(map(str, JOINED)))


def level(world: World) -> Rows:
    return rebalance(world)


def rebalance(world: World, *options: str) -> Rows:
    """Crowd all topics on four brokers, make them even again, and find nothing left to do."""
    for topic, state in world.show().items():
        rows = [[(p + r) % 4 + 1 for r in range(3)] for p in range(len(state.assignment))]
        reassign_all(world, topic, rows)
    deadline = time.monotonic() + 4 * BYTES_S
    while world.read_moves().reassignments:
        assert time.monotonic() < deadline, "the brokers are not empty yet"
        time.sleep(1)
    asked = ["--cluster", "lab", "--even-topics", *options]
    command = ["rebalance", "topics", *asked, "--out", "moves.json"]
    world.moves["allow"] = ["rebalance"]
    world.write_estate()
    expect(world.run(*command), 0)
    document = world.read_plan()
    rows = planned_rows(document)
    assert document["moves"]["replicas"] == count_copies(document)
    expect(world.apply(), 0)
    held = Counter(b for topic in world.show().values() for row in topic.assignment for b in row)
    assert all(held[broker] for broker in JOINED), held
    expect(world.run(*command), 0)
    assert planned_rows(again := world.read_plan()) == {}, again
    return rows


def count_copies(document: Mapping[str, Any]) -> int:
    """Count the replicas that a plan copies, from its images."""
    images = [each["change"] for each in document["resource_changes"]]
    return sum(
        len(set(new) - set(old))
        for image in images
        for old, new in zip(
            image["before"]["assignment"], image["after"]["assignment"], strict=True
        )
    )


TOPIC, BROKER = 2, 4
LISTS = [side.list_key for side in ThrottleSide]
RATES = [side.rate_key for side in ThrottleSide]


def alter(world: World, kind: int, name: str, values: Mapping[str, str | None]) -> None:
    """Set or unset configs as another tool does; librdkafka refuses an empty name."""
    from kafka.protocol.admin import IncrementalAlterConfigsRequest

    resource = IncrementalAlterConfigsRequest.AlterConfigsResource
    configs = [
        resource.AlterableConfig(name=key, config_operation=int(value is None), value=value)
        for key, value in values.items()
    ]
    changed = resource(resource_type=kind, resource_name=name, configs=configs)
    request = IncrementalAlterConfigsRequest(resources=[changed], validate_only=False)
    # A broker takes only its own configs.
    broker = int(name) if kind == BROKER and name else None
    for client in clients(world):
        answer = client._manager.run(client._manager.send, request, broker)
        assert [each.error_code for each in answer.responses] == [0], answer


def reassign(world: World, topic: str, row: list[int]) -> None:
    reassign_all(world, topic, [row])


def reassign_one(world: World, topic: str, number: int, row: Replicas) -> None:
    """Move one partition as another tool does, without a throttle."""
    for client in clients(world):
        client.alter_partition_reassignments({TopicPartition(topic, number): list(row)})


def reassign_all(world: World, topic: str, rows: list[list[int]]) -> None:
    """Move the first partitions of a topic as another tool does, without a throttle."""
    asked = {TopicPartition(topic, number): row for number, row in enumerate(rows)}
    for client in clients(world):
        client.alter_partition_reassignments(asked)


def clients(world: World) -> Iterator[Any]:
    """Yield one client of another tool, and close it."""
    alive = [each.id for each in world.cluster.statuses() if each.state == "running"]
    client = KafkaAdminClient(bootstrap_servers=world.cluster.addresses()[alive[0]])
    try:
        yield client
    finally:
        client.close()


SAFE = {"min_insync_replicas": "2"}

SCENARIOS: Mapping[str, tuple[int, Mapping[str, str], Callable[[World], Rows]]] = {
    "two_to_three": (2, {}, grow),
    "one_to_three": (1, SAFE, grow),
    "three_to_two_with_a_dead_broker": (3, {}, shrink_off_a_dead_broker),
    "order_only": (3, SAFE, reverse),
    "manual_assignment": (3, SAFE, shift),
    "destination_dies": (2, {}, lose_a_destination),
    "source_dies": (2, {}, lose_a_source),
    "controller_frozen": (2, {}, freeze_the_controller),
    "another_tool_moves": (2, {}, wait_for_a_foreign_move),
    "another_tool_left_throttles": (2, {}, find_leftovers),
    "list_left_elsewhere": (2, {}, leave_a_list_elsewhere),
    "permanent_rate": (2, {}, keep_a_permanent_rate),
    "rate_of_one_broker": (2, {}, override_the_rate),
    "rate_unlimited": (2, {}, take_the_limit_away),
    "killed": (2, {}, kill),
    "interrupted": (2, {}, interrupt),
    "stopped_and_continued": (2, {}, stop_and_continue),
    "cancelled": (2, {}, cancel),
    "paused_and_resumed": (2, {}, pause_and_resume),
    "drain": (3, SAFE, drain),
    "drain_impossible": (3, SAFE, drain_too_many),
    "drain_dead_broker": (3, SAFE, drain_a_dead_broker),
    "drain_stopped_and_continued": (3, SAFE, drain_and_change_meanwhile),
    "drain_while_another_broker_dies": (3, SAFE, drain_while_another_broker_dies),
    "drained_broker_dies": (3, SAFE, drain_a_broker_that_dies),
    "finished_row_moved_away": (2, {}, move_away_what_an_earlier_run_finished),
    "topic_created_again": (2, {}, create_a_topic_again),
    "drain_topic_deleted": (3, SAFE, drain_and_delete_a_topic),
    "brokers_joined": (3, SAFE, use_brokers_that_joined),
    "levelled": (3, SAFE, level),
}
"""By name: the replication factor at first, the configs, and what is done."""
