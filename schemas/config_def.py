"""The program that asks Kafka's own classes what topic configs there are.

It is run by path as `python -P config_def.py`, reads a launch from standard input and answers
with one JSON object: for each config its type, default, valid values and broker synonyms, in the
words of ConfigDef. It imports nothing of the package; a JVM can start once in a process only.
"""

from __future__ import annotations

import json
import os
import sys
from typing import Any


def read_config_def() -> dict[str, Any]:
    """Return what LogConfig defines, by name. A JVM runs in this process."""
    from jpype import JClass

    convert = JClass("org.apache.kafka.common.config.ConfigDef").convertToString
    log_config = JClass("org.apache.kafka.storage.internals.log.LogConfig")
    synonyms = JClass("org.apache.kafka.server.config.ServerTopicConfigSynonyms")
    fallbacks = synonyms.ALL_TOPIC_CONFIG_SYNONYMS
    return {
        str(key.name): {
            "type": str(key.type()),
            "default": _text(convert(key.defaultValue, key.type())),
            "valid": _text(key.validator),
            "synonyms": [str(each.name()) for each in fallbacks.get(key.name) or ()],
            "internal": bool(key.internalConfig),
        }
        for key in log_config.configDefCopy().configKeys().values()
    }


def _text(value: Any) -> str | None:
    return None if value is None else str(value)


def main() -> None:
    """Start a JVM, ask it, answer."""
    import jpype

    answer = os.fdopen(os.dup(sys.stdout.fileno()), "w")
    os.dup2(sys.stderr.fileno(), sys.stdout.fileno())  # what Java prints is no answer
    launch = json.load(sys.stdin)
    jpype.startJVM(launch["jvm"], *launch["options"], classpath=launch["class_path"])
    json.dump(read_config_def(), answer)
    answer.close()


if __name__ == "__main__":
    main()
