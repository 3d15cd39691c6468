"""A wheel and an sdist of this tree, built once for all tests of a process."""

from __future__ import annotations

import pytest
from building import ROOT, Built, build


@pytest.fixture(scope="session")
def built(tmp_path_factory: pytest.TempPathFactory) -> Built:
    out = tmp_path_factory.mktemp("dist")
    build(ROOT, out, "sdist", "wheel")
    (wheel,) = out.glob("*.whl")
    (sdist,) = out.glob("*.tar.gz")
    return Built(wheel, sdist)
