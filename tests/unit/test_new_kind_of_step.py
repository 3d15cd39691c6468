"""How many places know the kinds of steps: one more kind is added to a copy of the package.

It is planned, shown in every form, kept, read again, and applied, by changes to four modules.
"""

from __future__ import annotations

import json
import os
import re
import shutil
import subprocess
import sys
from pathlib import Path

import pytest

import reconciler
from reconciler.model.steps import STEPS

PACKAGE = Path(reconciler.__file__).parent

PLACES = {
    "model/steps.py": [  # its class, with its verb and how it follows from the images
        ('    DELETE = "delete"\n', '    SHUFFLE = "shuffle"\n    DELETE = "delete"\n'),
        (
            "Step = (\n    CreateTopic",
            '''@dataclass(frozen=True, slots=True)
class ShuffleReplicas:
    """Put the replicas of a topic into another order."""

    verb: ClassVar[Verb] = Verb.SHUFFLE
    topic: str

    @classmethod
    def derive(cls, topic: PlannedTopic) -> Self | None:
        """Return the step for a topic that is as specified but for their order."""
        return cls(topic.name) if topic.before and topic.before == topic.after else None

    @property
    def placed(self) -> Assignment:
        """The partitions that it adds: none."""
        return ()


Step = (
    ShuffleReplicas
    | CreateTopic''',
        ),
        ("    DeleteTopic,\n)", "    ShuffleReplicas,\n    DeleteTopic,\n)"),
    ],
    "kafka/writer.py": [  # its request
        (
            "REQUESTS: Mapping",
            """def _shuffle(client: AdminClient, steps: Any, *, validate_only: bool) -> Answers:
    return client.shuffle([step.topic for step in steps], validate_only)


REQUESTS: Mapping""",
        ),
        ("        Verb.CREATE:", "        Verb.SHUFFLE: _shuffle,\n        Verb.CREATE:"),
    ],
    "apply/kinds.py": [  # its cost, its effect, its words in reports, and how it is verified
        (
            "KINDS: Mapping",
            """SHUFFLE = StepKind(
    progress="shuffleing replicas",
    count_records=lambda _: 1,
    take_effect=lambda _, image: image,
    name_missing=lambda _: "its order",
    is_shown=lambda _, live: live.leaders == tuple(row[0] for row in live.assignment),
)

KINDS: Mapping""",
        ),
        (
            "        Verb.CREATE: CREATE,",
            "        Verb.SHUFFLE: SHUFFLE,\n        Verb.CREATE: CREATE,",
        ),
    ],
    "show/wording.py": [  # its sign, its colour and its words
        (
            "        Verb.CREATE: Wording(",
            '        Verb.SHUFFLE: Wording("~", Tone.TUNE, lambda *_: "another order"),\n'
            "        Verb.CREATE: Wording(",
        ),
    ],
}

RUN = '''
import json
from concurrent.futures import Future
from dataclasses import replace
from types import SimpleNamespace

from reconciler.api.records import begin_record
from reconciler.api.rendering import render_plan
from reconciler.apply.engine import run_plan
from reconciler.apply.kinds import PHASES
from reconciler.cli.schema import render_schema
from reconciler.errors import Location
from reconciler.fleet.outcome import describe_changes
from reconciler.kafka.writer import KafkaWriter
from reconciler.model.cluster import Broker, ClusterState, TopicState
from reconciler.model.plan import Plan, PlannedTopic, TopicImage
from reconciler.planfile.codec import decode_plan, encode_plan
from reconciler.show.view import view_plan

rows = ((1, 2), (2, 1))
image = TopicImage("id", rows, {})
brokers = (Broker(1), Broker(2))
topic = PlannedTopic("led", Location("led.yaml", 1), image, image)
plan = Plan("prod", "c", brokers, (topic,))


class Cluster:
    """One broker that leads everything until it is asked to shuffle."""

    def __init__(self):
        self.live = TopicState("led", "id", rows, leaders=(1, 1))
        self.asked = []
        self.entry = SimpleNamespace(name="prod")

    def shuffle(self, names, validate_only):
        self.asked.append(validate_only)
        if not validate_only:
            self.live = replace(self.live, leaders=(1, 2))
        answers = {name: Future() for name in names}
        for answer in answers.values():
            answer.set_result(None)
        return answers

    def client(self):
        return self

    def take_throttle(self, client):
        return 0.0

    def read_cluster(self, config_of=None):
        return ClusterState("c", brokers, {"led": self.live})

    def read_topic_ids(self, names):
        return dict.fromkeys(names, "id")

    def read_views(self, names, with_config=()):
        return {1: {"led": self.live}}

    def read_usage(self, names):
        return {}

    def monotonic(self):
        return 0.0

    def sleep(self, seconds):
        raise AssertionError("nothing has to be waited for")


cluster, phases = Cluster(), []
applied = run_plan(
    plan, cluster, KafkaWriter(cluster), cluster, lambda answered: phases.append(answered.phase)
)
again = run_plan(plan, cluster, KafkaWriter(cluster), cluster)
assert decode_plan(encode_plan(plan)) == plan
(row,) = describe_changes(plan, view_plan(plan))
document = json.loads(encode_plan(plan))
print(
    json.dumps(
        {
            "text": render_plan(plan),
            "markdown": render_plan(plan, "markdown"),
            "github": render_plan(plan, "github"),
            "steps": document["resource_changes"][0]["steps"],
            "actions": document["resource_changes"][0]["change"]["actions"],
            "summary": document["summary"],
            "schema": json.loads(render_schema("plan"))["$defs"]["Verb"]["enum"],
            "row": row["steps"],
            "record": dict(begin_record(plan).steps),
            "bars": list(PHASES),
            "phases": phases,
            "asked": cluster.asked,
            "outcomes": [[str(o.kind) for o in run.outcomes] for run in (applied, again)],
        }
    )
)
'''


@pytest.fixture(scope="module")
def said(tmp_path_factory: pytest.TempPathFactory) -> dict[str, object]:
    """Return what the copy with one more kind says and does."""
    copy = tmp_path_factory.mktemp("shuffles")
    shutil.copytree(PACKAGE, copy / "reconciler")  # with bytecode, so that little is compiled
    for place, changes in PLACES.items():
        file = copy / "reconciler" / place
        text = file.read_text(encoding="utf-8")
        for old, new in changes:
            assert text.count(old) == 1, (place, old)
            text = text.replace(old, new)
        file.write_text(text, encoding="utf-8")
    done = subprocess.run(
        [sys.executable, "-c", RUN],
        cwd=copy,
        env={**os.environ, "PYTHONPATH": str(copy), "NO_COLOR": "1"},
        capture_output=True,
        text=True,
        check=False,
    )
    assert done.returncode == 0, done.stderr
    found: dict[str, object] = json.loads(done.stdout)
    return found


def test_four_modules_are_changed() -> None:
    assert len(PLACES) == 4


def test_it_is_shown_in_every_form(said: dict[str, object]) -> None:
    assert "~ shuffle   led" in str(said["text"])
    assert "another order" in str(said["text"])
    assert "\n1 to shuffle\n" in str(said["text"])
    assert "| &#126;&nbsp;shuffle | `led` | another order |" in str(said["markdown"])
    assert "prod: 1 to shuffle" in str(said["github"])


def test_it_is_kept_by_its_verb(said: dict[str, object]) -> None:
    assert said["steps"] == said["row"] == ["shuffle"]
    assert said["actions"] == ["update"]
    assert isinstance(said["summary"], dict)
    assert said["summary"]["shuffle"] == 1
    assert said["record"] == {"shuffle": 1}
    assert isinstance(said["schema"], list)
    assert "shuffle" in said["schema"]


def test_it_is_validated_done_verified_and_not_repeated(said: dict[str, object]) -> None:
    assert said["asked"] == [True, False]
    assert said["phases"] == ["validate", "shuffle", "verify"]
    assert said["bars"] == [
        "validate",
        "create",
        "expand",
        "configure",
        "reorder",
        "move",
        "relocate",
        "elect",
        "shuffle",
        "delete",
        "verify",
    ]
    assert said["outcomes"] == [["done"], ["already done"]]


def test_no_other_module_knows_the_classes_of_steps() -> None:
    """What plans and shows them asks the model; what sends and follows them, the two tables."""
    classes = re.compile("|".join(rf"\b{kind.__name__}\b" for kind in STEPS))
    known = {
        str(path.relative_to(PACKAGE))
        for path in PACKAGE.rglob("*.py")
        if classes.search(path.read_text(encoding="utf-8"))
    }
    exported = {"model/__init__.py", "kafka/deletion.py"}  # the request of one kind
    # Requests of Kafka and actions of IAM have the names of their steps.
    exported |= {"model/requests.py", "show/grants.py"}
    assert known - exported == {"model/steps.py", "kafka/writer.py", "apply/kinds.py"}
