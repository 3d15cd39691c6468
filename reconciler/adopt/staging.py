"""A copy of an estate to try changes on: nothing reaches the estate before it holds as a whole."""

from __future__ import annotations

import tempfile
from contextlib import contextmanager
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import TYPE_CHECKING

from reconciler.errors import SpecError, UsageError
from reconciler.files import write_file
from reconciler.spec import load_estate
from reconciler.spec.files import find_files, leads_out, show_path

if TYPE_CHECKING:
    from collections.abc import Iterator, Mapping

    from reconciler.errors import Finding
    from reconciler.spec import Estate


@dataclass(slots=True)
class Staging:
    """The YAML files of an estate as texts, by their path in it, and the directory to try them in.

    `changed` holds the texts that differ from the estate's own.
    """

    estate: Path
    directory: Path
    texts: dict[str, str] = field(default_factory=dict)
    changed: dict[str, str] = field(default_factory=dict)

    @property
    def clusters_file(self) -> str:
        """The path of clusters.yaml, whether or not it is there."""
        return "clusters.yml" if "clusters.yml" in self.texts else "clusters.yaml"

    def change(self, texts: Mapping[str, str]) -> Estate:
        """Put texts in place and read the estate with them. Errors: SpecError."""
        for path, text in texts.items():
            if self.texts.get(path) != text:
                self.texts[path] = self.changed[path] = text
                self._store(path, text)
        try:
            return load_estate(self.directory)
        except SpecError as error:
            raise SpecError(map(self._rehome, error.findings)) from None

    def relative(self, file: str) -> str:
        """Return the path in the estate of a file that a location names."""
        return Path(file).relative_to(self.directory).as_posix()

    def _rehome(self, finding: Finding) -> Finding:
        """Let a finding point into the estate, where its file would be."""
        if finding.where is None:
            return finding
        file = show_path(self.estate / self.relative(finding.where.file))
        return replace(finding, where=replace(finding.where, file=file))

    def _store(self, path: str, text: str) -> None:
        target = self.directory / path
        target.parent.mkdir(parents=True, exist_ok=True)
        target.write_bytes(text.encode())


@contextmanager
def open_staging(estate: Path) -> Iterator[Staging]:
    """Copy an estate; a directory that is not there is an empty one.

    Errors: SpecError where the estate as it stands does not hold, UsageError where it is a file.
    """
    paths: list[Path] = []
    if estate.exists():
        load_estate(estate)
        files = find_files(estate)
        paths = [*([files.clusters] if files.clusters else []), *files.topics]
    with tempfile.TemporaryDirectory(prefix="reconciler-import-") as directory:
        staging = Staging(estate, Path(directory))
        for path in paths:
            name = path.relative_to(estate).as_posix()
            staging.texts[name] = path.read_bytes().decode("utf-8-sig")
            staging._store(name, staging.texts[name])
        yield staging


def write_texts(estate: Path, texts: Mapping[str, str]) -> None:
    """Write files of an estate, each whole or not at all. Errors: UsageError."""
    for name, text in sorted(texts.items()):
        shown = show_path(estate / name)
        if leads_out(estate / name, estate):
            raise UsageError(f"{shown} cannot be written: it is a link out of {show_path(estate)}")
        path = (estate / name).resolve()  # through a link, to the file that it means
        try:
            path.parent.mkdir(parents=True, exist_ok=True)
            write_file(path, text)
        except OSError as error:
            raise UsageError(f"{shown} cannot be written: {error.strerror}") from error
