"""`reconciler moves pause`, `rate`, `cancel` and `settle`, as people and jobs run them."""

from __future__ import annotations

import json
from collections.abc import Callable, Iterator, Mapping
from pathlib import Path
from typing import TYPE_CHECKING, Any

import pytest
from audit_topic import read_records
from command import RECONCILER, run_here
from holding import NEWEST, Holding, accept
from lab import HERE, wait_for
from moving import BROKER
from terminal import Terminal

from reconciler.api.authors import find_author
from reconciler.api.move_control import Locking, control_moves
from reconciler.kafka.lock import Holder, hold_lock
from reconciler.kafka.reader import KafkaReader
from reconciler.model.cluster import EMPTY, Place, Replicas, ThrottleSide
from reconciler.model.moves import MIN_INSYNC, UNLIMITED, DefaultRate, MovePolicy, PlannedMoves
from reconciler.model.outcomes import AnswerKind
from reconciler.model.plan import Plan, PlannedTopic, TopicImage
from reconciler.model.rights import MOVES_GROUP
from reconciler.planfile.codec import encode_plan
from reconciler.sandbox.cluster import Cluster

if TYPE_CHECKING:
    from command import Ran
    from moving import Moving

    Run = Callable[..., Ran]

pytestmark = pytest.mark.cluster

YES = "--auto-approve"
AUTHOR = find_author()


@pytest.fixture
def cluster(moving: Moving) -> Cluster:
    return moving.cluster


@pytest.fixture
def holding(cluster: Cluster) -> Iterator[Holding]:
    holding = Holding(cluster, NEWEST)
    yield holding
    holding.release()
    wait_for(lambda: not holding.mover.read([]).reassignments, 60)
    lists = {each.topic for each in holding.mover.read([]).lists}
    unset = dict.fromkeys((side.list_key for side in ThrottleSide), None)
    holding.mover.configure(dict.fromkeys(lists, unset))
    holding.mover.close()


@pytest.fixture
def run(cluster: Cluster, tmp_path: Path) -> Run:
    def run(*arguments: str) -> Ran:
        return run_here(tmp_path, cluster.bootstrap_servers, "moves", *arguments)

    return run


def write_plan(
    path: Path, holding: Holding, rows: Mapping[Place, tuple[Replicas, Replicas]]
) -> str:
    """Write a plan that moves partition 0 of topics; `rows` has the rows before and after."""
    reading = holding.mover.read([])
    topics = tuple(
        PlannedTopic(
            topic,
            HERE,
            TopicImage(None, (before,), EMPTY),
            TopicImage(None, (after,), EMPTY),
        )
        for (topic, _), (before, after) in sorted(rows.items())
    )
    path.write_text(encode_plan(Plan("lab", reading.cluster_id, reading.brokers, topics)))
    return str(path)


def read_journal(directory: Path) -> list[dict[str, Any]]:
    text = (directory / "moves.jsonl").read_text()
    return [json.loads(line) for line in text.splitlines()]


class TestRates:
    def test_a_pause_and_a_rate_reach_what_is_in_flight(
        self, holding: Holding, run: Run, topic_prefix: str, tmp_path: Path
    ) -> None:
        place = holding.begin(topic_prefix + "orders", (1, 2), (3, 2))
        assert holding.mover.set_rate(300_000).kind is AnswerKind.ACCEPTED
        wait_for(lambda: holding.shows_rate(300_000))

        ran = run("pause", "--journal", "moves.jsonl")
        assert (ran.code, ran.err) == (
            1,
            "error: stdin is not a terminal; pass --auto-approve\n",
        )
        assert holding.shows_rate(300_000)

        ran = run("pause", YES, "--journal", "moves.jsonl")
        assert (ran.code, ran.err) == (0, "")
        servers = f"--bootstrap-servers {holding.cluster.bootstrap_servers}"
        first, second, *_, paused, resume = ran.out.splitlines()
        assert first.endswith(": the throttle rate is 300000B/s, becomes 0B/s")
        assert second == "1 partition in flight limited by it"
        assert paused == "Paused. 1 partition in flight: copies stand still."
        assert ran.out.replace("\n", " ").endswith(
            f"To resume: reconciler moves rate 300000B {servers} "
        ), resume
        assert holding.shows_rate(0)

        ran = run("rate", "30MiB", YES, "--journal", "moves.jsonl")
        assert (ran.code, ran.err) == (0, "")
        assert ": the throttle rate is 0B/s, becomes 30MiB/s\n" in ran.out
        assert holding.shows_rate(30 << 20)
        holding.await_row(place, (3, 2))

        lines = read_journal(tmp_path)
        asked = [(line["verb"], line["rate_before"], line["rate_after"]) for line in lines]
        assert asked == [("pause", 300_000, 0)] * 4 + [("rate", 0, 30 << 20)] * 2
        assert [line["type"] for line in lines] == ["intervene", "intervened"] * 3
        ended = [line["ended"] for line in lines if line["type"] == "intervened"]
        assert ended == ["not approved", "done", "done"]
        assert {line["cluster_id"] for line in lines} == {holding.cluster.cluster_id}
        assert {(line["user"], line["host"]) for line in lines} == {(AUTHOR.user, AUTHOR.host)}

        ran = run("rate", "unlimited", YES)
        assert (ran.code, ran.err) == (0, "")
        assert ": the throttle rate is 30MiB/s, becomes unlimited\n" in ran.out
        assert holding.mover.read([]).default_rate == DefaultRate.of_moves(UNLIMITED)
        assert run("settle", YES).code == 0
        assert holding.mover.read([]).rates == ()

    @pytest.mark.slow
    def test_a_copy_that_no_list_names_is_not_stopped(
        self, holding: Holding, run: Run, topic_prefix: str
    ) -> None:
        place = holding.create(topic_prefix + "unnamed", (1, 2))
        holding.cluster.stop_broker(4)
        try:
            holding.move({place: (4, 2)})
            ran = run("pause", YES)
        finally:
            holding.cluster.start_broker(4)
        assert (ran.code, ran.err) == (2, "")
        assert "Not limited, because no list of throttled replicas names these copies:" in ran.out
        assert f"  {place[0]} partition 0 to 4,2\n" in ran.out

    def test_a_rate_of_zero_is_a_usage_error(self, run: Run) -> None:
        ran = run("rate", "0B", YES)
        assert ran.code == 64
        assert "0 stops every copy; use `reconciler moves pause`" in ran.err


class TestCancel:
    def test_moves_of_the_plan_are_taken_back_with_their_order(
        self, holding: Holding, run: Run, topic_prefix: str, tmp_path: Path
    ) -> None:
        moving = holding.begin(topic_prefix + "moving", (1, 2, 3), (4, 2, 3))
        foreign = holding.begin(topic_prefix + "other", (1, 2), (1, 4))
        turned = holding.begin(topic_prefix + "turned", (1, 2), (3, 2))
        holding.move({turned: None})
        holding.await_row(turned, (2, 1))
        waiting = holding.create(topic_prefix + "waiting", (1, 2))
        done = holding.create(topic_prefix + "done", (3, 4))
        rows = {
            moving: ((1, 2, 3), (4, 2, 3)),
            foreign: ((1, 2), (1, 3)),
            turned: ((1, 2), (3, 2)),
            waiting: ((1, 2), (3, 4)),
            done: ((1, 2), (3, 4)),
        }
        plan = write_plan(tmp_path / "plan.json", holding, rows)
        ran = run("cancel", "--plan", plan, YES, "--journal", "moves.jsonl")
        assert (ran.code, ran.err) == (0, "")
        states = "1 not begun, 1 in flight, 1 done, 1 in another order, 1 elsewhere"
        assert f": 5 partitions of the plan: {states}\n" in ran.out
        assert f"  {moving[0]} partition 0: back to 1,2,3\n" in ran.out
        assert "2 moves taken back, with the former order of replicas.\n" in ran.out
        assert holding.find(moving) is None
        assert holding.look(moving).replicas == (1, 2, 3)
        assert holding.look(moving).leader == 1
        assert f"  {turned[0]} partition 0: 1,2\n" in ran.out
        assert holding.look(turned).replicas == (1, 2)
        assert holding.find(foreign) is not None

        ran = run("cancel", "--plan", plan, YES, "--journal", "moves.jsonl")
        assert (ran.code, ran.out.splitlines()[-1]) == (0, "Nothing to cancel.")

        first, *outcomes, last, _, nothing = read_journal(tmp_path)
        found = [(line["topic"], line["kind"], line["text"]) for line in outcomes]
        assert found == [
            (moving[0], "done", "partition 0: taken back"),
            (turned[0], "done", "partition 0: taken back"),
        ]
        assert last["topics"] == {moving[0]: "done", turned[0]: "done"}
        assert (last["verb"], last["ended"], nothing["ended"]) == (
            "cancel",
            "done",
            "nothing to do",
        )
        fingerprint = json.loads((tmp_path / "plan.json").read_text())["fingerprint"]
        assert first["fingerprint"] == last["fingerprint"] == fingerprint

    def test_min_insync_is_set_back_where_nothing_is_in_flight(
        self, holding: Holding, topic_prefix: str
    ) -> None:
        topic, _ = place = holding.begin(
            topic_prefix + "lowered", (1, 2), (3, 2), min_insync_replicas="1"
        )
        config = {MIN_INSYNC: "2"}
        images = (TopicImage(None, (row,), config) for row in ((1, 2), (3, 2)))
        topics = (PlannedTopic(topic, HERE, *images),)
        policy = MovePolicy(frozenset(), None)
        moves = PlannedMoves(policy, 1, 1, 0, {topic: 1})
        plan = Plan("lab", None, (), topics, moves=moves)
        reader = KafkaReader(holding.connection)
        with control_moves(holding.connection) as control:
            done = control.cancel(control.begin_cancel(plan), Locking())
        assert (done.cancelled, done.lowered, done.failed) == ((place,), (), {})
        wait_for(
            lambda: (
                {
                    view[topic].config.get(MIN_INSYNC)
                    for view in reader.read_views([topic], [topic]).values()
                }
                == {"2"}
            )
        )

    def test_a_run_that_holds_the_lock_of_moves_is_named(
        self, holding: Holding, run: Run, topic_prefix: str, tmp_path: Path
    ) -> None:
        place = holding.begin(topic_prefix + "run", (1, 2), (3, 2))
        plan = write_plan(tmp_path / "plan.json", holding, {place: ((1, 2), (3, 2))})
        ana = Holder("ana", "desk", 7, "2026-03-01T12:00:00Z")
        with hold_lock(holding.connection, ana, group=MOVES_GROUP):
            ran = run("cancel", "--plan", plan, YES)
        assert (ran.code, ran.err) == (0, "")
        assert " are locked by ana@desk (process 7) since 2026-03-01T12:00:00Z" in ran.out
        assert holding.look(place).replicas == (1, 2)

    @pytest.mark.slow
    def test_an_apply_that_writes_is_not_disturbed(
        self, holding: Holding, run: Run, topic_prefix: str, tmp_path: Path
    ) -> None:
        place = holding.begin(topic_prefix + "locked", (1, 2), (3, 2))
        plan = write_plan(tmp_path / "plan.json", holding, {place: ((1, 2), (3, 2))})
        ana = Holder("ana", "desk", 7, "2026-03-01T12:00:00Z")
        with hold_lock(holding.connection, ana):
            ran = run("cancel", "--plan", plan, YES, "--lock-timeout", "0")
        assert ran.code == 1
        assert "is locked by ana@desk" in ran.err
        assert holding.find(place) is not None

    @pytest.mark.slow
    def test_a_move_whose_original_replicas_are_all_away_is_left(
        self, holding: Holding, run: Run, topic_prefix: str, tmp_path: Path
    ) -> None:
        place = holding.begin(topic_prefix + "leaderless", (3,), (1,))
        plan = write_plan(tmp_path / "plan.json", holding, {place: ((3,), (1,))})
        holding.cluster.stop_broker(3)
        try:
            wait_for(lambda: holding.look(place).leader == -1, 60)
            ran = run("cancel", "--plan", plan, YES)
        finally:
            holding.cluster.start_broker(3)
        assert (ran.code, ran.err) == (2, "")
        assert (
            f"  {place[0]} partition 0: none of its replicas from before the plan (3) is in sync "
            "and alive\n" in ran.out
        )
        assert holding.find(place) is not None

    def test_a_plan_of_another_cluster_is_refused(self, run: Run, tmp_path: Path) -> None:
        plan = Plan("lab", "another", (), ())
        (tmp_path / "plan.json").write_text(encode_plan(plan))
        ran = run("cancel", "--plan", "plan.json", YES)
        assert ran.code == 64
        assert "the plan is for cluster another, not " in ran.err


class TestSettle:
    def test_a_run_that_was_killed_is_cleaned_up(
        self, holding: Holding, run: Run, topic_prefix: str, tmp_path: Path
    ) -> None:
        topic, _ = place = holding.begin(topic_prefix + "killed", (1, 2), (3, 2))
        ran = run("settle", YES, "--journal", "moves.jsonl")
        assert (ran.code, ran.err) == (2, "")
        assert "1 partition still in flight: moves are paused: the throttle rate is 0." in ran.out
        assert holding.shows_rate(0)
        assert run("rate", "30MiB", YES).code == 0
        ran = run("settle", YES, "--journal", "moves.jsonl")
        assert (ran.code, ran.err) == (0, "")
        assert f"  throttled replicas of {topic}\n" in ran.out
        assert "  the cluster default of the throttle rates\n" in ran.out
        assert ran.out.splitlines()[-1] == "Settled: nothing is left."
        assert holding.look(place).replicas == (3, 2)
        reading = holding.mover.read([])
        assert (reading.lists, reading.rates) == ((), ())
        ran = run("settle", YES)
        assert (ran.code, ran.out) == (0, "Nothing to settle.\n")
        lines = [line for line in read_journal(tmp_path) if line["type"] == "intervened"]
        assert [(line["ended"], line["topics"]) for line in lines] == [
            ("unfinished", {topic: "in flight"}),
            ("done", {topic: "done"}),
        ]
        assert [(line["rate_before"], line["rate_after"]) for line in lines] == [
            (0, None),
            (30 << 20, None),
        ]

    @pytest.mark.slow
    def test_a_list_of_every_replica_is_shown_and_stays(
        self, holding: Holding, run: Run, topic_prefix: str
    ) -> None:
        topic, _ = holding.create(topic_prefix + "starred", (1, 2))
        accept(holding.mover.configure({topic: {ThrottleSide.LEADER.list_key: "*"}}))
        wait_for(lambda: bool(holding.mover.read([]).lists))
        ran = run("settle", YES)
        assert (ran.code, ran.err) == (2, "")
        assert f"reconciler moves unthrottle --topic {topic} " in ran.out.replace("\n", " ")
        assert [each.topic for each in holding.mover.read([]).lists] == [topic]

    def test_a_default_that_reconciler_did_not_set_stays(
        self, holding: Holding, run: Run, topic_prefix: str
    ) -> None:
        place = holding.begin(topic_prefix + "kept", (1, 2), (3, 2))
        assert holding.mover.set_rate(90 << 20, permanent=True).kind is AnswerKind.ACCEPTED
        holding.await_row(place, (3, 2))
        ran = run("settle", YES)
        assert (ran.code, ran.err) == (0, "")
        assert "The cluster default stays, because reconciler did not set it." in ran.out
        reading = holding.mover.read([])
        assert reading.lists == ()
        assert reading.default_rate == DefaultRate(90 << 20, 90 << 20)
        ran = run("rate", "30MiB", YES)
        assert ran.code == 1
        assert "add --permanent to change it" in ran.err.replace("\n", " ")
        assert run("rate", "80MiB", "--permanent", YES).code == 0
        assert holding.mover.read([]).default_rate == DefaultRate(80 << 20, 80 << 20)
        ran = run("pause", YES)
        assert ran.code == 0
        assert "reconciler moves rate 80MiB --permanent " in " ".join(ran.out.split())

    def test_another_run_of_moves_is_not_disturbed(
        self, holding: Holding, run: Run, topic_prefix: str, tmp_path: Path
    ) -> None:
        holding.hold(holding.create(topic_prefix + "running", (1, 2)), (1, 2))
        ana = Holder("ana", "desk", 7, "2026-03-01T12:00:00Z")
        with hold_lock(holding.connection, ana, group=MOVES_GROUP):
            ran = run("settle", YES, "--lock-timeout", "0", "--journal", "moves.jsonl")
        assert ran.code == 1
        last = read_journal(tmp_path)[-1]
        assert (last["ended"], "locked by ana@desk" in last["error"]) == ("locked", True)
        assert " are locked by ana@desk" in ran.err
        assert holding.shows_rate(0)

    def test_what_only_the_plan_can_restore_is_named(
        self, holding: Holding, run: Run, topic_prefix: str, tmp_path: Path
    ) -> None:
        topic = topic_prefix + "lowered"
        place = holding.create(topic, (1, 2), (1, 2), min_insync_replicas="1")
        holding.move({(topic, 1): (1, 2, 3)}, may_resize=True)
        holding.await_row((topic, 1), (1, 2, 3))
        holding.hold(place, (1, 2))
        (tmp_path / "topics").mkdir()
        (tmp_path / "topics/clusters.yaml").write_text("version: 1\nclusters: {lab: {}}\n")
        (tmp_path / "topics/orders.yaml").write_text(
            f"topic: {topic}\npartitions: 2\nreplication_factor: 3\n"
            "config: {min.insync.replicas: 2}\n"
        )
        ran = run("settle", YES, "--cluster", "lab")
        assert (ran.code, ran.err) == (2, "")
        assert f"  {topic}: its partitions have 2 to 3 replicas; " in ran.out
        assert f"  {topic}: min.insync.replicas is 1, and its spec says 2; " in ran.out
        assert holding.mover.read([]).lists == ()


class TestUnthrottle:
    def test_what_is_named_is_removed_and_nothing_else(
        self, holding: Holding, run: Run, topic_prefix: str, tmp_path: Path
    ) -> None:
        one, _ = holding.create(topic_prefix + "one", (1, 2))
        two, _ = holding.create(topic_prefix + "two", (1, 2))
        star = {ThrottleSide.LEADER.list_key: "*"}
        accept(holding.mover.configure({one: star, two: star}))
        assert holding.mover.set_rate(90 << 20, permanent=True).kind is AnswerKind.ACCEPTED
        wait_for(lambda: len(holding.mover.read([]).lists) == 2)
        ran = run("unthrottle", "--topic", one, YES, "--journal", "moves.jsonl")
        assert (ran.code, ran.err) == (0, "")
        assert [each.topic for each in holding.mover.read([]).lists] == [two]
        assert holding.mover.read([]).default_rate is not None
        assert run("unthrottle", "--topic", two, "--default", YES).code == 0
        assert (holding.mover.read([]).lists, holding.mover.read([]).rates) == ((), ())
        last = read_journal(tmp_path)[-1]
        assert (last["verb"], last["topics"]) == ("unthrottle", {one: "done"})

    def test_a_rate_of_one_broker(self, holding: Holding, moving: Moving, run: Run) -> None:
        for side in ThrottleSide:
            moving.set(BROKER, "2", side.rate_key, "1000")
        wait_for(lambda: len(holding.mover.read([]).rates) == 2)
        assert run("unthrottle", "--broker", "2", YES).code == 0
        assert holding.mover.read([]).rates == ()

    def test_everything_wrong_is_said_at_once(
        self, holding: Holding, run: Run, topic_prefix: str
    ) -> None:
        topic, _ = holding.begin(topic_prefix + "used", (1, 2), (3, 2))
        ran = run("unthrottle", "--topic", topic, "--topic", "nowhere", "--default", YES)
        assert ran.code == 64
        said = ran.err.replace("\n", " ")
        assert f"a list of {topic} is used by what is in flight" in said
        assert "nothing is throttled by a list of nowhere" in said
        assert "the default rate of the cluster is of moves" in said
        assert holding.shows_lists(topic)
        assert run("unthrottle", YES).code == 64


class TestAuditTopic:
    def test_an_intervention_is_recorded_and_never_refused_for_its_record(
        self, holding: Holding, run: Run, topic_prefix: str, tmp_path: Path
    ) -> None:
        """A pause must work during an incident, even if its audit topic does not."""
        audit, _ = holding.create(topic_prefix + "audit", (1, 2))
        (tmp_path / "topics").mkdir()
        clusters = tmp_path / "topics/clusters.yaml"
        text = "version: 1\nclusters: {{lab: {{audit_topic: {}}}}}\n"
        clusters.write_text(text.format(audit))
        assert run("rate", "1MiB", YES, "--cluster", "lab").code == 0
        (record,) = read_records(holding.cluster.bootstrap_servers, audit, 1)
        assert (record["type"], record["verb"], record["ended"]) == ("intervened", "rate", "done")

        clusters.write_text(text.format(topic_prefix + "nowhere"))
        ran = run("pause", YES, "--cluster", "lab", "--journal", "moves.jsonl")
        assert ran.code == 1
        assert holding.shows_rate(0)
        kept, _, error = ran.err.partition("\n")
        assert json.loads(kept)["ended"] == read_journal(tmp_path)[-1]["ended"] == "audit lost"
        assert error.startswith(
            f"error: audit_topic {topic_prefix}nowhere does not take the record"
        )
        assert topic_prefix + "nowhere" not in holding.mover.read([]).partitions
        assert run("rate", "unlimited", YES).code == 0


@pytest.mark.slow
class TestPerson:
    def test_a_no_changes_nothing(self, holding: Holding, topic_prefix: str) -> None:
        place = holding.begin(topic_prefix + "asked", (1, 2), (3, 2))
        assert holding.mover.set_rate(1_000).kind is AnswerKind.ACCEPTED
        wait_for(lambda: holding.shows_rate(1_000))
        with Terminal(program(holding, "pause"), {}) as terminal:
            terminal.wait_for(b"Pause moves on ", b"? [y/N]: ")
            terminal.press(b"n\r")
            terminal.wait_for(b"Not approved. Nothing was changed.")
        assert holding.shows_rate(1_000)
        assert holding.find(place) is not None

    def test_an_interrupt_ends_the_wait_and_leaves_the_throttles(
        self, holding: Holding, topic_prefix: str
    ) -> None:
        topic, _ = place = holding.begin(topic_prefix + "waited", (1, 2), (3, 2))
        assert holding.mover.set_rate(1_000).kind is AnswerKind.ACCEPTED
        wait_for(lambda: holding.shows_rate(1_000))
        with Terminal(program(holding, "settle", YES), {}) as terminal:
            terminal.wait_for(b" in flight ")
            terminal.press(b"\x03")
            terminal.wait_for(b"interrupted")
        assert b"Traceback" not in terminal.output
        assert holding.find(place) is not None
        assert holding.shows_lists(topic)
        ana = Holder("ana", "desk", 7, "2026-03-01T12:00:00Z")
        with hold_lock(holding.connection, ana, group=MOVES_GROUP) as lease:
            lease.check()


def program(holding: Holding, *arguments: str) -> tuple[str, ...]:
    servers = holding.cluster.bootstrap_servers
    return (*RECONCILER, "moves", *arguments, "--bootstrap-servers", servers)
