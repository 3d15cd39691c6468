"""What a notification says of an apply and of drift, and when there is none."""

from __future__ import annotations

from collections.abc import Iterator

import pytest
from shorthand import cluster, plan, spec, topic

from reconciler.codehost.host import Links
from reconciler.codehost.notices import Notice, TopicNotice, notice_apply, notice_drift
from reconciler.codehost.webhook import render_json, render_slack
from reconciler.diff.guards import list_refusals
from reconciler.errors import Finding, RefusedPlanError
from reconciler.model.outcomes import Outcome, OutcomeKind
from reconciler.planfile.codec import fingerprint_plan
from reconciler.run.ending import Applied, Ended, Ending, end_run

LIVE = topic("1 2 3", "a")
B = spec("b", partitions=1, replication_factor=2)
EMPTY = plan([spec("a", partitions=3)], cluster(LIVE))
GROWN = plan([spec("a", partitions=4), B], cluster(LIVE))
REFUSED = plan([spec("a", partitions=1), B], cluster(LIVE))
LINKS = Links("https://ci.example/7?a=1&b=2", None, "https://ci.example/commit/def")

FAILED = Outcome("a", OutcomeKind.FAILED, "broker 2 said: no disk", "topic-failed")
SKIPPED = Outcome("c", OutcomeKind.NOT_ATTEMPTED)
DONE = Outcome("b", OutcomeKind.DONE)


def test_failed_topics_have_their_reasons_and_done_ones_are_counted() -> None:
    ending = end_run(Applied((DONE, SKIPPED, FAILED)))
    notice = notice_apply("prod", GROWN, ending, "", LINKS)
    assert notice is not None
    assert render_json(notice) == {
        "format_version": "1.0",
        "about": "apply",
        "cluster": "prod",
        "result": "failed",
        "title": "Kafka apply on prod: failed",
        "reason": None,
        "counts": {"done": 1, "failed": 1, "not attempted": 1},
        "topics": [
            {
                "topic": "a",
                "result": "failed",
                "reason": "broker 2 said: no disk",
                "rule": "topic-failed",
            },
            {"topic": "c", "result": "not attempted", "reason": "", "rule": ""},
        ],
        "topics_left_out": 0,
        "fingerprint": fingerprint_plan(GROWN),
        "run_url": "https://ci.example/7?a=1&b=2",
        "request_url": None,
        "commit_url": "https://ci.example/commit/def",
    }


@pytest.mark.parametrize("began", [True, False])
def test_refused_topics_have_their_rules_whether_apply_began_or_not(began: bool) -> None:
    ending = end_run(error=RefusedPlanError(list_refusals(REFUSED))) if began else None
    notice = notice_apply("prod", REFUSED, ending, "", LINKS)
    assert notice is not None
    (refused,) = notice.topics
    assert (notice.result, notice.counts, notice.reason) == ("refused", {"refused": 1}, "")
    assert (refused.topic, refused.rule) == ("a", "partitions-never-shrink")
    assert "3 → 1 partition: " in refused.reason


def test_an_error_that_stopped_the_run_is_the_reason() -> None:
    lost = Finding("connect-refused", "no broker answers")
    notice = notice_apply("prod", GROWN, end_run(error=RefusedPlanError([lost])), "", LINKS)
    assert notice is not None
    stopped = Ending(Ended.ERROR, (SKIPPED,), "no broker answers [connect-refused]")
    notice = notice_apply("prod", GROWN, stopped, "", LINKS)
    assert notice is not None
    assert notice.reason == "no broker answers [connect-refused]"
    assert [one.topic for one in notice.topics] == ["c"]


def test_a_plan_that_nobody_approved_or_that_could_not_be_made() -> None:
    unapproved = notice_apply("prod", GROWN, None, "saved to plan.json", LINKS)
    assert unapproved is not None
    assert unapproved.result == "not approved"
    unmade = notice_apply("prod", None, None, "error: x [connect-refused]\n", LINKS)
    assert unmade is not None
    assert (unmade.result, unmade.reason) == ("error", "error: x [connect-refused]")


@pytest.mark.parametrize("ending", [end_run(Applied((DONE,))), end_run(), None])
def test_an_apply_that_is_as_planned_has_no_notice(ending: Ending | None) -> None:
    assert notice_apply("prod", EMPTY, ending, "", LINKS) is None


def test_drift_is_counted_and_named() -> None:
    notice = notice_drift("prod", REFUSED, "", LINKS)
    assert notice is not None
    assert notice.title == "Kafka drift on prod: 1 to create, 1 refused"
    assert notice.counts == {"create": 1, "refused": 1}
    assert [(one.topic, one.result, one.rule) for one in notice.topics] == [
        ("a", "refused", "partitions-never-shrink"),
        ("b", "differs", ""),
    ]
    assert notice.topics[1].reason.startswith("create 1 partition")


def test_drift_that_could_not_be_checked_and_none() -> None:
    notice = notice_drift("prod", None, "", LINKS)
    assert notice is not None
    assert (notice.result, notice.reason) == (
        "could not be checked",
        "The run printed nothing; see its log.",
    )
    assert notice_drift("prod", EMPTY, "", LINKS) is None


def list_texts(message: dict[str, object]) -> Iterator[str]:
    blocks = message["blocks"]
    assert isinstance(blocks, list)
    for block in blocks:
        yield block["text"]["text"]


def test_slack_shows_topics_reasons_and_links() -> None:
    notice = notice_apply("prod", GROWN, end_run(Applied((DONE, FAILED))), "", LINKS)
    assert notice is not None
    message = render_slack(notice)
    assert message["text"] == "Kafka apply on prod: failed"
    title, text = list_texts(message)
    assert title == "Kafka apply on prod: failed"
    assert text.splitlines() == [
        "1 done, 1 failed",
        "• *failed* `a`: broker 2 said: no disk [topic-failed]",
        "<https://ci.example/7?a=1&amp;b=2|run> · <https://ci.example/commit/def|commit>",
    ]


def test_slack_takes_no_text_of_a_broker_for_a_mention() -> None:
    notice = Notice("apply", "prod", "error", "<!channel> & <https://evil.example|click>")
    (_, text) = list_texts(render_slack(notice))
    assert text == "&lt;!channel&gt; &amp; &lt;https://evil.example|click&gt;"


@pytest.mark.parametrize("number", [0, 1, 7, 20, 21, 5_000])
@pytest.mark.parametrize("letter", ["x", "&"])
def test_messages_stay_within_the_limits_of_slack(number: int, letter: str) -> None:
    """An ampersand is the worst case: its escape has five characters."""
    topics = tuple(
        TopicNotice(f"{n:0249}", "not attempted", letter * 9_000, "a-rule") for n in range(number)
    )
    notice = Notice(
        "apply", "c" * 200, "failed", letter * 9_000, {"failed": 1}, topics, None, LINKS
    )
    message = render_slack(notice)
    title, *texts = list_texts(message)
    assert len(title) <= 150
    assert 0 < max(map(len, texts)) <= 3_000
    assert len(texts) + 1 <= 50
    shown = sum(text.count("• ") for text in texts)
    assert shown == min(number, 20)
    assert (f"{number - 20:,} more in the run" in "\n".join(texts)) == (number > 20)


def test_the_document_is_cut_and_says_so() -> None:
    topics = tuple(TopicNotice(str(n), "failed", "x" * 9_000) for n in range(250))
    document = render_json(Notice("apply", "prod", "failed", "y" * 9_000, {}, topics))
    assert (len(document["topics"]), document["topics_left_out"]) == (100, 150)
    assert len(document["reason"]) == 2_000
    assert {len(one["reason"]) for one in document["topics"]} == {500}


def test_what_turns_a_name_around_is_shown_to_people() -> None:
    topics = (TopicNotice("shop.\u202ex", "failed", "a\u200bb", "a-rule"),)
    notice = Notice("apply", "prod\u2066", "error", "line 1\nline\x9b 2", {}, topics)
    shown = "\n".join(list_texts(render_slack(notice)))
    document = render_json(notice)
    for text in (shown, document["title"], document["reason"], document["topics"][0]["reason"]):
        assert text.replace("\n", "").isprintable()
    assert document["reason"] == "line 1\nline\\x9b 2"
    assert "`shop.\\u202ex`: a\\u200bb" in shown
