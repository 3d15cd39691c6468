"""Kafka's own StripedReplicaPlacer, the Java class itself, in a JVM of its own.

The controller hands its placer a view of the cluster, an interface with two methods. Here a class
with the least that this can cost stands in for it: a list of brokers that never changes, and one
constant log directory. A Java runtime brings no compiler, so the class is assembled.
"""

from __future__ import annotations

import multiprocessing
import struct
import tempfile
import time
from collections.abc import Iterable, Sequence
from concurrent.futures import ProcessPoolExecutor
from pathlib import Path
from typing import TYPE_CHECKING, Any, NamedTuple

from reconciler.sandbox.jars import fetch_jars, known_releases
from reconciler.sandbox.launch import LOG_SETTINGS, find_java
from reconciler.sandbox.request import Silence

if TYPE_CHECKING:
    import numpy as np

    Node = tuple[int, str]
    Spec = tuple[int, int, int]

OPTIONS = ("-Xmx2g", "-XX:+UseSerialGC")
WARM_UP = 15
"""How often 10,000 topics of 20 partitions are placed before anything is timed."""

_PLACEMENT = "org/apache/kafka/metadata/placement"
_PLACER = f"{_PLACEMENT}/StripedReplicaPlacer"
_VIEW, _SPEC, _TOPIC = (
    f"{_PLACEMENT}/{name}" for name in ("ClusterDescriber", "PlacementSpec", "TopicAssignment")
)
_UUID = "org/apache/kafka/common/Uuid"
_FIELD, _METHOD, _INTERFACE_METHOD = 9, 10, 11


class Cpu(NamedTuple):
    """CPU seconds of a JVM's process, and those of the thread that placed.

    The difference is the collection of garbage, and compilation where the JVM is not warm.
    """

    process: float
    thread: float


class JavaPlacer:
    """A process with a warm JVM that places topics when asked."""

    def __init__(self) -> None:
        self.release = known_releases()[-1]
        java = find_java()
        self.described = f"Kafka {self.release}, Java {java.version}, {' '.join(OPTIONS)}"
        self._directory = tempfile.TemporaryDirectory()
        (Path(self._directory.name) / "View.class").write_bytes(assemble_view())
        jars = [str(jar) for jar in fetch_jars(self.release, Silence())]
        launch = (str(java.jvm), [self._directory.name, *jars])
        spawn = multiprocessing.get_context("spawn")
        self._pool = ProcessPoolExecutor(1, spawn, _start_jvm, launch)

    def __enter__(self) -> JavaPlacer:
        nodes = [(b, f"rack-{b % 5}") for b in range(100)]
        for seed in range(WARM_UP):
            self.place(nodes, [(0, 20, 3)] * 10_000, seed)
        return self

    def __exit__(self, *raised: object) -> None:
        self._pool.shutdown()
        self._directory.cleanup()

    def place(
        self, nodes: Sequence[Node], specs: Sequence[Spec], seed: int
    ) -> tuple[Cpu, np.ndarray[Any, Any]]:
        """Place topics: (first partition, partitions, replicas) each, all of one replication.

        Returns what it cost, one call into Java for all topics and no Python on the way; and the
        rows, one below the other. Reading these out of the JVM is not in the cost.
        """
        return self._pool.submit(_place, nodes, specs, seed).result()


def _start_jvm(jvm: str, class_path: list[str]) -> None:
    import jpype

    options = (*OPTIONS, f"-Dlog4j.configuration={LOG_SETTINGS.as_uri()}")
    jpype.startJVM(jvm, *options, classpath=class_path)


def _place(
    nodes: Sequence[Node], specs: Sequence[Spec], seed: int
) -> tuple[Cpu, np.ndarray[Any, Any]]:
    from jpype import JClass

    placement = _PLACEMENT.replace("/", ".")
    usable_broker = JClass(f"{placement}.UsableBroker")
    optional, array_list = JClass("java.util.Optional"), JClass("java.util.ArrayList")
    view = JClass("View")
    view.brokers = array_list([usable_broker(b, optional.of(rack), False) for b, rack in nodes])
    view.directory = JClass(_UUID.replace("/", ".")).randomUuid()
    view.placer = JClass(f"{placement}.StripedReplicaPlacer")(JClass("java.util.Random")(seed))
    make = JClass(f"{placement}.PlacementSpec")
    different = {spec: make(*spec) for spec in set(specs)}
    asked, place = array_list([different[spec] for spec in specs]), view()
    start = time.process_time(), time.thread_time()
    topics = asked.stream().map(place).toList()
    cpu = Cpu(time.process_time() - start[0], time.thread_time() - start[1])
    return cpu, _read_rows(topics).reshape(-1, specs[0][2])


def _read_rows(topics: Any) -> np.ndarray[Any, Any]:
    """Bring all replicas out of the JVM in one array, for one call each would take minutes."""
    import numpy as np
    from jpype import JClass

    handles, types = JClass("java.lang.invoke.MethodHandles"), JClass("java.lang.invoke.MethodType")
    wrap = JClass("java.lang.invoke.MethodHandleProxies").asInterfaceInstance
    a_list, a_stream = JClass("java.util.List"), JClass("java.util.stream.Stream")
    integer, function = JClass("java.lang.Integer"), JClass("java.util.function.Function")
    find = handles.publicLookup().findVirtual

    def stream(owner: str, method: str) -> Any:
        inner = find(JClass(owner), method, types.methodType(a_list))
        outer = find(a_list, "stream", types.methodType(a_stream))
        return wrap(function, handles.filterReturnValue(inner, outer))

    placement = _PLACEMENT.replace("/", ".")
    partitions = topics.stream().flatMap(stream(f"{placement}.TopicAssignment", "assignments"))
    replicas = partitions.flatMap(stream(f"{placement}.PartitionAssignment", "replicas"))
    to_int = find(integer, "intValue", types.methodType(integer.TYPE))
    numbers = replicas.mapToInt(wrap(JClass("java.util.function.ToIntFunction"), to_int))
    return np.array(numbers.toArray(), dtype=np.int32)


class _Constants:
    """The constants of a class file, each there once."""

    def __init__(self) -> None:
        self.entries: dict[bytes, int] = {}

    def text(self, text: str) -> int:
        return self._add(struct.pack(">BH", 1, len(text)) + text.encode())

    def type(self, name: str) -> int:
        return self._add(struct.pack(">BH", 7, self.text(name)))

    def member(self, kind: int, owner: str, name: str, descriptor: str) -> int:
        signature = struct.pack(">BHH", 12, self.text(name), self.text(descriptor))
        return self._add(struct.pack(">BHH", kind, self.type(owner), self._add(signature)))

    def _add(self, entry: bytes) -> int:
        return self.entries.setdefault(entry, len(self.entries) + 1)


def assemble_view() -> bytes:
    """Return the class file of this, in the words of Java:

    public class View implements ClusterDescriber, Function {
        public static List brokers;
        public static Uuid directory;
        public static StripedReplicaPlacer placer;
        public Iterator usableBrokers() { return brokers.iterator(); }
        public Uuid defaultDir(int broker) { return directory; }
        public Object apply(Object spec) { return placer.place((PlacementSpec) spec, this); }
    }
    """
    constants = _Constants()
    fields = {"brokers": "Ljava/util/List;", "directory": f"L{_UUID};", "placer": f"L{_PLACER};"}
    methods = list(_assemble_methods(constants, fields))
    interfaces = [constants.type(_VIEW), constants.type("java/util/function/Function")]
    parts = [
        struct.pack(">HHH", 0x21, constants.type("View"), constants.type("java/lang/Object")),
        struct.pack(">HHH", len(interfaces), *interfaces),
        struct.pack(">H", len(fields)),
        *(
            struct.pack(">HHHH", 0x9, constants.text(name), constants.text(descriptor), 0)
            for name, descriptor in fields.items()
        ),
        struct.pack(">H", len(methods)),
        *methods,
        struct.pack(">H", 0),
    ]
    head = struct.pack(">IHHH", 0xCAFEBABE, 0, 49, len(constants.entries) + 1)
    return b"".join([head, *constants.entries, *parts])


def _assemble_methods(constants: _Constants, fields: dict[str, str]) -> Iterable[bytes]:
    def get(field: str) -> bytes:
        return b"\xb2" + _index(constants.member(_FIELD, "View", field, fields[field]))

    create = constants.member(_METHOD, "java/lang/Object", "<init>", "()V")
    code = b"\x2a\xb7" + _index(create) + b"\xb1"  # aload_0, invokespecial, return
    yield _assemble_method(constants, "<init>", "()V", code)

    iterate = constants.member(
        _INTERFACE_METHOD, "java/util/List", "iterator", "()Ljava/util/Iterator;"
    )
    code = get("brokers") + b"\xb9" + _index(iterate) + b"\x01\x00\xb0"  # invokeinterface, areturn
    yield _assemble_method(constants, "usableBrokers", "()Ljava/util/Iterator;", code)

    code = get("directory") + b"\xb0"  # areturn
    yield _assemble_method(constants, "defaultDir", f"(I)L{_UUID};", code)

    place = constants.member(_METHOD, _PLACER, "place", f"(L{_SPEC};L{_VIEW};)L{_TOPIC};")
    cast = b"\x2b\xc0" + _index(constants.type(_SPEC))  # aload_1, checkcast
    code = get("placer") + cast + b"\x2a\xb6" + _index(place) + b"\xb0"  # aload_0, invokevirtual
    yield _assemble_method(constants, "apply", "(Ljava/lang/Object;)Ljava/lang/Object;", code)


def _assemble_method(constants: _Constants, name: str, descriptor: str, code: bytes) -> bytes:
    """Return a public method; none here needs more than three slots of stack, or two variables."""
    body = struct.pack(">HHI", 3, 2, len(code)) + code + struct.pack(">HH", 0, 0)
    head = struct.pack(">HHHH", 0x1, constants.text(name), constants.text(descriptor), 1)
    return head + struct.pack(">HI", constants.text("Code"), len(body)) + body


def _index(constant: int) -> bytes:
    return struct.pack(">H", constant)
