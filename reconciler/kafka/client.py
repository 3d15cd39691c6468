"""The client of librdkafka, without two ways in which it ends the program."""

from __future__ import annotations

import sys
import weakref
from _thread import start_new_thread
from collections.abc import Callable
from concurrent.futures import Future
from typing import Any

from confluent_kafka import KafkaException, Node, TopicCollection
from confluent_kafka.admin import AdminClient, DescribeClusterResult

from reconciler.kafka.errors import error_of

NO_TOPIC = "reconciler.visibility-check"
"""A topic that does not exist, hidden if and only if some topics may be."""


def ignore(_: object) -> None:
    """Ignore an event, since the answer has everything that matters, or let go of a client."""


def read_cluster_id(client: AdminClient) -> str | None:
    """Return the id in the answers that a client got so far; None if it is in none of them."""
    try:
        return client.cluster_id(timeout=0)
    except KafkaException:
        return None


class Client(AdminClient):
    """A client that its own thread never destroys, and that describes clusters without an id."""

    _is_nameless = False

    def __del__(self) -> None:
        # librdkafka would abort the program. Its thread completes the futures of the client, so it
        # runs their callbacks, and may be the one that collects garbage. At the end of the program,
        # the main thread destroys what is left. No threading.Thread: its locks may be held here,
        # where garbage is collected.
        if not sys.is_finalizing():
            start_new_thread(ignore, (self,))

    # The stubs know the C function below AdminClient, which takes the future as an argument.
    def describe_cluster(  # type: ignore[override]
        self, **options: Any
    ) -> Future[DescribeClusterResult]:
        """Describe the cluster; one that reports no id, without racks and rights.

        confluent-kafka 2.16.1 copies the id without asking whether there is one: the program ends
        by a segmentation fault (Amazon MSK Serverless). So its own request is made only if an
        earlier answer had the id. Cost: one more request for the first description of a client.
        """
        if read_cluster_id(self) is not None:
            return super().describe_cluster(**options)
        timeout_s = options.get("request_timeout", -1)
        described: Future[DescribeClusterResult] = Future()
        if self._is_nameless:
            _complete(described, lambda: self._describe_nameless(timeout_s))
            return described
        asked = self.describe_topics(TopicCollection([NO_TOPIC]), request_timeout=timeout_s)
        # Whoever gives the client up is not to wait for the answer.
        client = weakref.ref(self)

        def go_on(answer: Future[Any]) -> None:
            error = answer.exception()
            if isinstance(error, KafkaException) and error_of(error).code() < 0:  # no answer
                described.set_exception(error)
            elif (kept := client()) is not None:
                kept._describe_next(described, options, timeout_s)
            else:
                described.cancel()

        asked[NO_TOPIC].add_done_callback(go_on)
        return described

    def _describe_next(
        self, described: Future[DescribeClusterResult], options: dict[str, Any], timeout_s: float
    ) -> None:
        """Describe the cluster after the first answer."""
        if read_cluster_id(self) is None:
            self._is_nameless = True
            _complete(described, lambda: self._describe_nameless(timeout_s))
            return
        answer = super().describe_cluster(**options)
        answer.add_done_callback(lambda done: _complete(described, done.result))

    def _describe_nameless(self, timeout_s: float) -> DescribeClusterResult:
        shown = self.list_topics(timeout=timeout_s)
        # The stubs want a rack and a controller; the client itself gives None for either as well.
        none: Any = None
        brokers: Any = shown.brokers.values()
        nodes = {each.id: Node(each.id, each.host, each.port, none) for each in brokers}
        return DescribeClusterResult(nodes.get(shown.controller_id, none), list(nodes.values()))


def _complete(future: Future[Any], ask: Callable[[], Any]) -> None:
    """Give a future the answer to a question, or its error."""
    try:
        future.set_result(ask())
    except Exception as error:  # noqa: BLE001 - whatever it is, whoever waits gets it
        future.set_exception(error)
