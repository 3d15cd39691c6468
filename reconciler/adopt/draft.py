"""An estate as texts, to try changes on: nothing is written before the result is valid."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field, replace
from types import MappingProxyType

from reconciler.errors import Finding, show_path
from reconciler.spec.estate import Estate, parse_estate


@dataclass(frozen=True, slots=True)
class EstateDraft:
    """An estate with changes that are not written yet: its files by their path in it.

    `root` is the estate's path as locations spell it. `changed` has the texts that differ from the
    files on the disk.
    """

    root: str
    texts: Mapping[str, str]
    estate: Estate
    changed: Mapping[str, str] = field(default_factory=lambda: MappingProxyType({}))

    @property
    def clusters_file(self) -> str:
        """The path of clusters.yaml, whether or not it is there."""
        return "clusters.yml" if "clusters.yml" in self.texts else "clusters.yaml"

    def change(self, texts: Mapping[str, str]) -> EstateDraft:
        """Return the estate with these texts in it. Errors: SpecError."""
        # The entire estate is parsed again, so that a mistake shows before anything is written.
        new = {path: text for path, text in texts.items() if self.texts.get(path) != text}
        if not new:
            return self
        every = {**self.texts, **new}
        files = {path: text.encode() for path, text in every.items()}
        estate = parse_estate(files, self.root, is_draft=True)
        return replace(self, texts=every, estate=estate, changed={**self.changed, **new})

    def find_files(self) -> dict[str, str]:
        """Return the path in the estate of the file that holds each topic."""
        paths = {show_path(self.root, path): path for path in self.texts}
        return {topic.name: paths[topic.where.file] for topic in self.estate.written}


def open_draft(files: Mapping[str, bytes | Finding], root: str) -> EstateDraft:
    """Start from the files of an estate. Errors: SpecError if it is not valid as it is."""
    estate = parse_estate(files, root, is_draft=True)
    texts = {path: f.decode("utf-8-sig") for path, f in files.items() if isinstance(f, bytes)}
    return EstateDraft(root, texts, estate)


@dataclass(frozen=True, slots=True)
class Adoption:
    """The files that change, by their path in the estate, and the result for each topic.

    `differences` counts the topics that the next plan would still change; None without a cluster.
    """

    texts: Mapping[str, str] = field(default_factory=lambda: MappingProxyType({}))
    created: tuple[str, ...] = ()
    written: tuple[str, ...] = ()
    updated: tuple[str, ...] = ()
    unchanged: int = 0
    differences: int | None = None
    notes: tuple[Finding, ...] = ()
