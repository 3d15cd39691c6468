"""kafka-gitops: one state.yaml of topics, services and users."""

from __future__ import annotations

from reconciler.adopt.converters.source import ForeignTopic, Source, read_source
from reconciler.spec.values import YamlList, YamlMap, YamlText


def read_state_files(source: Source) -> None:
    """Read state files, and the files of topics that their settings name."""
    for document in source.documents:
        topics = source.get_table(source.get_table(document, "settings"), "topics")
        replication = source.read_count(
            source.get_table(topics, "defaults"), "replication", "settings"
        )
        _note_lists(topics, source)
        source.note_rest(document, {"settings", "topics"}, "state file")
        for part in [document, *_follow(document, source)]:
            written = source.get_table(part, "topics")
            for name, _ in written.entries():
                _read_topic(name, source.get_table(written, name), replication, source)


def _follow(document: YamlMap, source: Source) -> list[YamlMap]:
    """Read the file of topics that the settings name, if there is one."""
    settings = source.get_table(document, "settings")
    source.note_rest(settings, {"topics", "files"}, "settings")
    files = source.get_table(settings, "files")
    source.note_rest(files, {"topics"}, "settings.files")
    named = source.read_text(files, "topics")
    if not named:
        return []
    path, content = source.follow(document.file, named)
    if any(other.file == path for other in source.documents):
        return []
    if content is None:
        source.note(
            f"there is no {path}",
            files.key("topics").where,
            "add this file to the files to convert",
        )
        return []
    part = read_source({path: content}, source.follow)
    source.notes += part.notes
    return list(part.documents)


def _note_lists(topics: YamlMap, source: Source) -> None:
    """Add a note for topics that kafka-gitops ignores, with the matching `ignore`."""
    for key, word in (
        ("blacklist", "prefixed"),
        ("exclude", "prefixed"),
        ("whitelist", "prefixed"),
    ):
        prefixes = source.get_table(topics, key).get(word)
        if isinstance(prefixes, YamlList) and prefixes:
            patterns = ", ".join(f'"{prefix}*"' for prefix in prefixes)
            way_out = "unmanaged topics are left alone anyway"
            if key != "whitelist":
                way_out = f"write ignore: [{patterns}] below each cluster"
            source.note(f"settings.topics.{key} names {patterns}", topics.key(key).where, way_out)
    known = {"defaults", "blacklist", "exclude", "whitelist"}
    source.note_rest(topics, known, "settings.topics")
    source.note_rest(
        source.get_table(topics, "defaults"), {"replication"}, "settings.topics.defaults"
    )


def _read_topic(name: YamlText, table: YamlMap, replication: int | None, source: Source) -> None:
    source.note_rest(table, {"partitions", "replication", "configs"}, name)
    own = source.read_count(table, "replication", name)
    source.topics.append(
        ForeignTopic(
            str(name),
            name.where,
            partitions=source.read_count(table, "partitions", name),
            replication_factor=replication if own is None else own,
            config=source.read_config(table.get("configs"), name),
        )
    )
