"""Progress: how answers move a topic on, and what it amounts to in the end."""

from __future__ import annotations

import pytest
from shorthand import HERE, rows

from reconciler.apply.convergence import Remaining
from reconciler.apply.kinds import MAX_RECORDS, kind_of
from reconciler.apply.progress import Progress, judge_outcome
from reconciler.errors import Finding
from reconciler.model.cluster import Assignment, leave_to_brokers
from reconciler.model.outcomes import Answer, AnswerKind, Outcome, OutcomeKind
from reconciler.model.plan import Deletion, PlannedTopic, TopicImage
from reconciler.model.steps import (
    ConfigureTopic,
    CreateTopic,
    DeleteTopic,
    ExpandTopic,
    Step,
    steps_of,
)

YES = Answer(AnswerKind.ACCEPTED)
NO = Answer(AnswerKind.REFUSED, "POLICY_VIOLATION", "too many partitions")
LOST = Answer(AnswerKind.LOST, "_TIMED_OUT", "timed out")
NOT_DONE = Answer(AnswerKind.NOT_DONE, "THROTTLING_QUOTA_EXCEEDED", "too fast")
MAYBE = "the brokers may still carry it out: run the same command again"
CREATE = PlannedTopic("t", HERE, None, TopicImage(None, rows("1 2"), {}))
GROW = PlannedTopic(
    "t", HERE, TopicImage("id", rows("1"), {}), TopicImage("id", rows("1 2 3"), {"flush.ms": "1"})
)
ADD, ALTER = steps_of(GROW)


def progress(planned: PlannedTopic = GROW, *answers: Answer) -> Progress:
    """Return the progress of a topic after some answers."""
    topic = Progress(planned, list(steps_of(planned)))
    for answer in answers:
        topic.send()
        topic.take(answer)
    return topic


def outcome(topic: Progress, *left: Step) -> tuple[OutcomeKind, str]:
    found = judge_outcome(topic, Remaining(left), "interrupted")
    return found.kind, found.text


# Answers.


def test_an_accepted_step_is_no_longer_to_do() -> None:
    assert progress(GROW, YES).todo == [ALTER]


@pytest.mark.parametrize("answer", [NO, LOST])
def test_a_step_that_was_not_accepted_stays_to_do(answer: Answer) -> None:
    assert progress(GROW, answer).todo == [ADD, ALTER]


def test_the_accepted_part_of_a_large_step_leaves_its_rest() -> None:
    many = tuple((1,) for _ in range(MAX_RECORDS + 1))
    topic = progress(PlannedTopic("t", HERE, None, TopicImage(None, many, {})), YES)
    assert topic.todo == [ExpandTopic("t", MAX_RECORDS, ((1,),))]


@pytest.mark.parametrize(("answers", "doubt"), [((), False), ((YES,), False), ((LOST,), True)])
def test_a_topic_is_in_doubt_while_its_last_answer_was_not_yes(
    answers: tuple[Answer, ...], doubt: bool
) -> None:
    assert progress(GROW, *answers).in_doubt is doubt


EXISTS = Answer(AnswerKind.REFUSED, "TOPIC_ALREADY_EXISTS", "it exists")
NO_INCREASE = Answer(AnswerKind.REFUSED, "INVALID_PARTITIONS", "no increase")


@pytest.mark.parametrize(
    ("planned", "answer", "worth"),
    [
        (GROW, YES, False),
        (GROW, NO, False),
        (GROW, LOST, True),
        (GROW, NOT_DONE, True),
        (CREATE, EXISTS, True),
        (GROW, NO_INCREASE, True),
        (CREATE, NO_INCREASE, False),
        (GROW, EXISTS, False),
    ],
)
def test_what_was_lost_or_contradicted_is_worth_repeating(
    planned: PlannedTopic, answer: Answer, worth: bool
) -> None:
    assert progress(planned, answer).worth_repeating is worth


MANY = PlannedTopic("t", HERE, None, TopicImage(None, ((1,),) * (MAX_RECORDS + 1), {}))
REST = ExpandTopic("t", MAX_RECORDS, ((1,),))


def test_a_contradicted_step_is_believed_to_be_done_and_its_rest_is_not() -> None:
    topic = progress(MANY, EXISTS)
    topic.believe()
    assert (topic.todo, topic.sent, topic.in_doubt) == ([REST], True, False)


def test_what_the_brokers_show_is_learnt() -> None:
    topic = progress(GROW, LOST)
    topic.learn([ALTER])
    assert topic.todo == [ALTER]


@pytest.mark.parametrize(
    "shown", [steps_of(MANY), [ExpandTopic("t", 7, ((1,),) * (MAX_RECORDS - 6))]]
)
def test_a_broker_that_shows_less_than_was_accepted_teaches_nothing(shown: list[Step]) -> None:
    topic = progress(MANY, YES, LOST)
    topic.learn(shown)
    assert topic.todo == [REST]


def test_an_expansion_that_a_broker_does_not_show_yet_is_not_done_again() -> None:
    topic = progress(GROW, YES, LOST)
    topic.learn([ADD])
    assert topic.todo == [ALTER]


# Outcomes.


def test_what_every_broker_shows_is_done() -> None:
    topic = progress(GROW, YES, YES)
    topic.shown = True
    assert judge_outcome(topic, Remaining(), "") == Outcome("t", OutcomeKind.DONE)


def test_what_was_accepted_and_not_seen_everywhere_is_done_with_a_word() -> None:
    assert outcome(progress(GROW, YES, YES), ALTER) == (
        OutcomeKind.DONE,
        "accepted; not every broker was seen to show it",
    )


def test_what_was_believed_to_be_there_and_is_not_seen_is_unknown() -> None:
    topic = progress(CREATE, EXISTS)
    topic.believe()
    assert outcome(topic, *steps_of(CREATE)) == (
        OutcomeKind.UNKNOWN,
        f"the brokers refuse it: it exists; not seen: the topic; {MAYBE}",
    )
    assert outcome(topic) == (OutcomeKind.DONE, "")


def test_what_was_never_sent_was_not_attempted() -> None:
    assert outcome(progress()) == (OutcomeKind.NOT_ATTEMPTED, "interrupted before its turn")


def test_what_the_brokers_refuse_when_asked_first_has_failed() -> None:
    topic = progress()
    topic.failure = NO
    assert outcome(topic) == (OutcomeKind.FAILED, "the brokers refuse it: too many partitions")


def test_a_lost_answer_to_something_done_is_done() -> None:
    topic = progress(GROW, LOST)
    topic.failure = LOST
    assert outcome(topic) == (OutcomeKind.DONE, "")


def test_a_request_without_an_answer_is_unknown_while_nothing_of_it_is_there() -> None:
    """A controller that was frozen may carry it out after the report."""
    topic = progress(CREATE, LOST)
    topic.failure = LOST
    assert outcome(topic, *steps_of(CREATE)) == (
        OutcomeKind.UNKNOWN,
        f"no answer: timed out; not seen: the topic; {MAYBE}",
    )


def test_a_clear_refusal_does_not_decide_an_earlier_request_without_an_answer() -> None:
    topic = progress(CREATE, LOST, NO)
    topic.failure = NO
    assert outcome(topic, *steps_of(CREATE)) == (
        OutcomeKind.UNKNOWN,
        "the brokers refuse it: too many partitions; an earlier request got no answer; "
        f"not seen: the topic; {MAYBE}",
    )


def test_a_request_that_was_not_carried_out_has_failed() -> None:
    topic = progress(CREATE, NOT_DONE)
    topic.failure = NOT_DONE
    assert outcome(topic, *steps_of(CREATE)) == (
        OutcomeKind.FAILED,
        "it was not carried out: too fast",
    )


def test_an_unanswered_second_step_is_unknown_although_the_first_is_done() -> None:
    topic = progress(GROW, YES, LOST)
    topic.failure = LOST
    assert outcome(topic, ALTER) == (
        OutcomeKind.UNKNOWN,
        f"no answer: timed out; not seen: flush.ms; {MAYBE}",
    )


def test_what_somebody_else_changed_under_an_unanswered_request_is_unknown() -> None:
    moved = Finding("plan-stale", "t: flush.ms: 1 → 2 since the plan was made")
    topic = progress(GROW, YES, LOST)
    topic.failure = LOST
    found = judge_outcome(topic, Remaining(moved=(moved,)), "")
    assert found == Outcome("t", OutcomeKind.UNKNOWN, moved.what, "plan-stale")


def test_a_creation_that_stopped_between_two_requests_says_what_is_missing() -> None:
    topic = progress(MANY, YES)
    assert outcome(topic, REST) == (OutcomeKind.HALF_DONE, "interrupted; missing: partition 9000")


def test_what_the_brokers_accepted_counts_although_they_lag() -> None:
    topic = progress(GROW, YES, NO)
    topic.failure = NO
    assert outcome(topic, ADD, ALTER) == (
        OutcomeKind.HALF_DONE,
        "the brokers refuse it: too many partitions; missing: flush.ms",
    )


def test_a_change_of_which_nothing_is_there_has_failed() -> None:
    topic = progress(GROW, NO)
    topic.failure = NO
    assert outcome(topic, ADD, ALTER) == (
        OutcomeKind.FAILED,
        "the brokers refuse it: too many partitions",
    )


def test_a_change_of_which_one_step_is_there_is_half_done() -> None:
    topic = progress(GROW, YES, NO)
    topic.failure = NO
    assert outcome(topic, ALTER) == (
        OutcomeKind.HALF_DONE,
        "the brokers refuse it: too many partitions; missing: flush.ms",
    )


def test_an_interrupt_between_two_steps_leaves_half() -> None:
    assert outcome(progress(GROW, YES), ALTER) == (
        OutcomeKind.HALF_DONE,
        "interrupted; missing: flush.ms",
    )


def test_an_interrupt_before_the_answer_is_unknown() -> None:
    topic = progress(CREATE)
    topic.send()
    assert outcome(topic, *steps_of(CREATE)) == (
        OutcomeKind.UNKNOWN,
        f"interrupted before an answer; not seen: the topic; {MAYBE}",
    )


def test_what_nobody_can_look_at_is_unknown() -> None:
    topic = progress(GROW, LOST)
    topic.failure = LOST
    assert judge_outcome(topic, None, "") == Outcome(
        "t",
        OutcomeKind.UNKNOWN,
        f"no answer: timed out; no broker answers to look it up; {MAYBE}",
    )


def test_what_the_controller_answered_is_known_though_nobody_can_look() -> None:
    topic = progress(GROW, YES, NO)
    topic.failure = NO
    assert judge_outcome(topic, None, "").kind is OutcomeKind.HALF_DONE
    topic = progress(GROW, NO)
    topic.failure = NO
    assert judge_outcome(topic, None, "").kind is OutcomeKind.FAILED


def test_what_was_accepted_is_done_though_nobody_can_look() -> None:
    assert judge_outcome(progress(GROW, YES, YES), None, "").kind is OutcomeKind.DONE


def test_what_somebody_else_changed_meanwhile_has_failed_under_its_rule() -> None:
    moved = Finding("plan-stale", "t: it was deleted since the plan was made")
    found = judge_outcome(progress(GROW, YES), Remaining(moved=(moved,)), "")
    assert found == Outcome("t", OutcomeKind.FAILED, moved.what, "plan-stale")


@pytest.mark.parametrize(
    ("step", "words"),
    [
        (CreateTopic("t", rows("1"), {}), "the topic"),
        (ExpandTopic("t", 6, rows("1 2 3")), "partitions 6 to 8"),
        (ExpandTopic("t", 6, rows("1")), "partition 6"),
        (ConfigureTopic("t", {"b": "1"}, frozenset({"a"})), "a, b"),
    ],
)
def test_a_step_in_a_few_words(step: Step, words: str) -> None:
    assert kind_of(step).name_missing(step) == words


# Deletions.


DELETE = PlannedTopic(
    "t", HERE, TopicImage("id", rows("1"), {}), None, deletion=Deletion(604_800_000, (0,))
)
GONE = Answer(AnswerKind.REFUSED, "UNKNOWN_TOPIC_ID", "no such id")


def test_an_id_that_is_not_known_any_more_reads_as_deleted() -> None:
    topic = progress(DELETE, GONE)
    assert topic.contradicted
    topic.believe()
    assert topic.todo == []
    assert outcome(topic) == (OutcomeKind.DONE, "")


def test_a_deletion_that_the_brokers_refuse_has_failed() -> None:
    topic = progress(DELETE, NO)
    topic.failure = topic.answer
    found = outcome(topic, DeleteTopic("t", "id"))
    assert found == (OutcomeKind.FAILED, "the brokers refuse it: too many partitions")


def test_a_deletion_that_was_held_back_was_not_attempted() -> None:
    topic = progress(DELETE)
    topic.hold_back("somebody reads it")
    assert topic.todo == []
    assert outcome(topic) == (OutcomeKind.NOT_ATTEMPTED, "somebody reads it")


def test_what_failed_before_it_could_be_held_back_keeps_its_reason() -> None:
    topic = progress(DELETE)
    topic.failure = NO
    topic.hold_back("somebody reads it")
    assert outcome(topic) == (OutcomeKind.FAILED, "the brokers refuse it: too many partitions")


def test_a_deletion_in_words() -> None:
    assert kind_of(DeleteTopic("t", "id")).name_missing(DeleteTopic("t", "id")) == "its deletion"


# Placed otherwise.

OTHERWISE = Remaining(
    moved=(Finding("plan-stale", "t: partition 0 is on brokers [3], not [1]", "plan again"),),
    elsewhere=True,
)


@pytest.mark.parametrize(("planned", "done"), [(CREATE, "created"), (GROW, "expanded")])
def test_what_brokers_placed_otherwise_is_done_and_says_so(
    planned: PlannedTopic, done: str
) -> None:
    topic = progress(planned, *[YES] * len(steps_of(planned)))
    found = judge_outcome(topic, OTHERWISE, "")
    assert (found.kind, found.rule) == (OutcomeKind.DONE, "placed-otherwise")
    assert found.text == (
        f"{done}, but the brokers placed it otherwise: partition 0 is on brokers [3], not [1]; "
        "if they always do, write placement: broker below this cluster in clusters.yaml"
    )


# Made otherwise: a topic with other counts or configs, by brokers that accepted its creation.

RESIZED = Remaining(moved=(Finding("plan-stale", "t: partition 0 has 3 replicas, not 1"),))


def test_a_new_topic_with_other_counts_is_half_done_and_says_so() -> None:
    found = judge_outcome(progress(CREATE, YES), RESIZED, "")
    assert (found.kind, found.rule) == (OutcomeKind.HALF_DONE, "created-otherwise")
    assert found.text == (
        "created, but the brokers made it otherwise: partition 0 has 3 replicas, not 1; if they "
        "always do, write the values that they set into the spec, and name the service below this "
        "cluster in clusters.yaml (service)"
    )


def test_a_topic_that_was_there_was_changed_by_somebody_else() -> None:
    found = judge_outcome(progress(GROW, YES, YES), RESIZED, "")
    assert (found.kind, found.rule) == (OutcomeKind.FAILED, "plan-stale")


@pytest.mark.parametrize("made", [OTHERWISE, RESIZED])
@pytest.mark.parametrize(
    ("answer", "kind"), [(LOST, OutcomeKind.UNKNOWN), (NO, OutcomeKind.FAILED)]
)
def test_what_was_not_accepted_may_be_anothers(
    made: Remaining, answer: Answer, kind: OutcomeKind
) -> None:
    topic = progress(CREATE, answer)
    topic.failure = answer
    assert judge_outcome(topic, made, "").kind is kind


HINT = "; if they take no assignment at all, write placement: broker below this cluster in "


@pytest.mark.parametrize(
    ("error", "rows_", "hinted"),
    [
        ("INVALID_REPLICA_ASSIGNMENT", rows("1 2"), True),
        ("INVALID_REQUEST", rows("1 2"), True),
        ("INVALID_REQUEST", leave_to_brokers(2, 1), False),
        ("POLICY_VIOLATION", rows("1 2"), False),
    ],
)
def test_a_refused_assignment_names_placement_by_the_brokers(
    error: str, rows_: Assignment, hinted: bool
) -> None:
    no = Answer(AnswerKind.REFUSED, error, "no")
    topic = progress(PlannedTopic("t", HERE, None, TopicImage(None, rows_, {})), no)
    topic.failure = no
    assert (HINT in outcome(topic, *topic.todo)[1]) == hinted
