"""How trouble is said."""

from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from threading import Condition
from urllib.parse import quote

import pytest

from reconciler.errors import (
    Finding,
    FindingsError,
    Location,
    keep_interrupts,
    keep_secret,
    sort_findings,
)


def test_a_finding_says_where_what_the_way_out_and_the_rule() -> None:
    finding = Finding("value-range", "0 is too few", "write 1", Location("a.yaml", 3, 7))
    assert str(finding) == "a.yaml:3:7: 0 is too few; write 1 [value-range]"


def test_what_no_screen_should_be_sent_is_escaped() -> None:
    finding = Finding("value-range", "key 'a\tb\x1b[31m' is\nodd", "no\u2028way")
    assert finding.what == "key 'a\\tb\\x1b[31m' is\\nodd"
    assert finding.way_out == "no\\u2028way"


@pytest.mark.parametrize(
    "secret", ["p4ss word", "it's", "tab\there", "päss", "a\\b", "x(y|z", "***!"]
)
@pytest.mark.parametrize("spell", [str, repr, quote, "<{}>".format])
def test_a_secret_is_hidden_however_it_is_spelled(secret: str, spell: Callable[[str], str]) -> None:
    keep_secret(secret)
    said = Finding("value-range", f"told {spell(secret)}", f"use {spell(secret)}")
    for form in (secret, repr(secret)[1:-1], quote(secret)):
        assert form not in str(said)
    assert "told" in said.what


def test_what_is_too_short_to_be_a_secret_hides_no_message() -> None:
    keep_secret("a")
    keep_secret("")
    assert Finding("value-range", "a bad day").what == "a bad day"


def test_the_longest_secret_is_hidden_first() -> None:
    for secret in ("abc", "abcdef", "bcd"):
        keep_secret(secret)
    assert Finding("value-range", "abcdef abc").what == "*** ***"


def test_secrets_are_kept_from_every_thread_at_once() -> None:
    with ThreadPoolExecutor(8) as pool:
        tasks = [pool.submit(keep_secret, f"secret-{n}") for n in range(200)]
        tasks += [pool.submit(Finding, "value-range", f"secret-{n}") for n in range(200)]
        for task in tasks:
            task.result()
    said = {Finding("value-range", f"secret-{n}").what for n in range(200)}
    assert said == {"***"}


def test_findings_of_one_place_are_distinguished_by_their_topics() -> None:
    finding = Finding("replication-stays", "2 → 3", where=Location("clusters.yaml", 2))
    error = FindingsError([finding.about("orders"), finding.about("clicks")])
    assert str(error) == (
        "clusters.yaml:2:1: clicks: 2 → 3 [replication-stays]\n"
        "clusters.yaml:2:1: orders: 2 → 3 [replication-stays]"
    )


def test_a_rule_that_is_not_in_the_rulebook_cannot_be_named() -> None:
    with pytest.raises(KeyError, match="no-such-rule"):
        Finding("no-such-rule", "what")


def test_findings_are_ordered_by_place_and_said_once() -> None:
    late = Finding("value-range", "b", where=Location("a.yaml", 9))
    early = Finding("value-range", "a", where=Location("a.yaml", 2))
    nowhere = Finding("value-range", "c")
    assert sort_findings([late, early, nowhere, late]) == (nowhere, early, late)


def return_result_despite(error: BaseException) -> None:
    """Raise what Python makes of a C function that returns a result with an exception set."""
    raise SystemError("poll returned a result with an exception set") from error


def take_lock_back_despite(error: BaseException) -> None:
    """Raise what Python makes of an error just before a condition takes back its lock."""
    condition = Condition()
    with condition:
        condition.release()
        raise error


@pytest.mark.parametrize("spoil", [return_result_despite, take_lock_back_despite])
def test_an_interrupt_is_passed_on(spoil: Callable[[BaseException], None]) -> None:
    with pytest.raises(KeyboardInterrupt), keep_interrupts():
        spoil(KeyboardInterrupt())


@pytest.mark.parametrize(
    ("spoil", "error"),
    [(return_result_despite, SystemError), (take_lock_back_despite, RuntimeError)],
)
def test_another_error_is_left_as_it_is(
    spoil: Callable[[BaseException], None], error: type[Exception]
) -> None:
    with pytest.raises(error), keep_interrupts():
        spoil(ValueError())
