"""Fields are compared by deepdiff, which is loaded without what it needs for arrays only."""

from __future__ import annotations

import subprocess
import sys

import pytest

pytest.importorskip("numpy", reason="the fleet extra brings numpy and pandas")

COMPARE = """
import sys, threading
from reconciler.diff import fields

def load_in_another_thread():
    threads = [threading.Thread(target=__import__, args=("numpy",))]
    [thread.start() for thread in threads], [thread.join() for thread in threads]
    print("numpy of another thread:", "numpy" in sys.modules)

def compare():
    found, desired = {"config": {"a": "1", "b": "2"}}, {"config": {"a": "1"}, "partitions": 3}
    print(*(change.path for change in fields.compare_fields(found, desired)))
"""


def run(program: str) -> list[str]:
    command = [sys.executable, "-c", COMPARE + program]
    done = subprocess.run(command, capture_output=True, text=True, check=True)
    return done.stdout.splitlines()


@pytest.mark.parametrize("later", ["numpy", pytest.param("pandas", marks=pytest.mark.slow)])
def test_neither_numpy_nor_pandas_is_loaded_and_both_are_to_be_had_later(later: str) -> None:
    program = f"compare(); print(*{{'numpy', 'pandas'}} & sys.modules.keys()); import {later}"
    assert run(program) == ["config.b partitions", ""]


@pytest.mark.slow
def test_another_thread_loads_numpy_meanwhile() -> None:
    program = """
hidden = fields._Hidden(("numpy",))
sys.meta_path.insert(0, hidden)
load_in_another_thread()
"""
    assert run(program) == ["numpy of another thread: True"]


@pytest.mark.slow
def test_what_is_loaded_already_is_used() -> None:
    program = "import numpy; compare(); import deepdiff.helper; print(deepdiff.helper.np is numpy)"
    assert run(program) == ["config.b partitions", "True"]
