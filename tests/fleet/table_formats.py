"""The jars of Delta and Iceberg, and the settings of Spark with which a user adds them.

    python table_formats.py DIRECTORY        (make test-formats does it)

downloads the jars into DIRECTORY.
"""

from __future__ import annotations

import sys
from pathlib import Path

from reconciler.sandbox.jars import Jar, download_jars
from reconciler.sandbox.request import Silence

ICEBERG, DELTA, UNITY = "1.11.0", "4.4.0", "0.6.0"
JARS = (
    Jar(
        f"org.apache.iceberg:iceberg-spark-runtime-4.1_2.13:{ICEBERG}",
        47_959_591,
        "d6ea6c5d099288daeb7d5a92061bd3d7d8f296492632b42378e5f2f0e3066242",
    ),
    Jar(
        f"io.delta:delta-spark_4.1_2.13:{DELTA}",
        9_471_929,
        "75a9400986853c061f5109f012547de2545a5759e5e752e5ef633dabe16a4f10",
    ),
    Jar(
        f"io.delta:delta-storage:{DELTA}",
        113_863,
        "c46735481fa8e326b0957be02b4420cbcab4b325bb08009b7f2045a95133f1cc",
    ),
    Jar(
        f"io.delta:delta-kernel-api:{DELTA}",
        2_838_619,
        "ee9b5a14ac3b7efdff4d61a58478fe8eb0e5a3fbca43889dca7290795fe79a11",
    ),
    Jar(
        f"io.delta:delta-kernel-defaults:{DELTA}",
        227_185,
        "225c975199e4718b38ee5b7e6da7f19e9585024262b2cec2656b32151a856b0b",
    ),
    Jar(
        f"io.delta:delta-kernel-unitycatalog:{DELTA}",
        43_048,
        "cea22dfb4ac562b3cd27bf652697750e8336009d73fb06631363aaaad5345ffa",
    ),
    Jar(
        f"io.unitycatalog:unitycatalog-client:{UNITY}",
        564_136,
        "48257499a86b801a3e2372cec55ac226ca1c1c7eabe5c118e7302f29a1fdbc19",
    ),
    Jar(
        f"io.unitycatalog:unitycatalog-hadoop:{UNITY}",
        78_389,
        "c47b63c961c87102b9e1d63809a0915ba4c86b7652f57c8d39ca3a05b441a150",
    ),
)
"""What Maven resolves for both, without what Spark brings."""

DELTA_DEFAULTS = "spark.databricks.delta.properties.defaults"
ICEBERG_DEFAULTS = "spark.sql.catalog.lakes.table-default"


def prepare(directory: Path) -> None:
    """Download the jars that are not there."""
    if absent := [jar for jar in JARS if not (directory / jar.path).exists()]:
        download_jars(absent, directory, Silence())


def configure(jars: Path, place: Path) -> Path:
    """Write the settings of lakes below a place. Returns: the directory for `SPARK_CONF_DIR`.

    The first ones are those of docs/how-to/store-a-lake.md. The last ones let both formats remove
    what they replaced at once, and not days later.
    """
    settings = {
        "spark.jars": ",".join(str((jars / jar.path).absolute()) for jar in JARS),
        "spark.sql.extensions": "io.delta.sql.DeltaSparkSessionExtension,"
        "org.apache.iceberg.spark.extensions.IcebergSparkSessionExtensions",
        "spark.sql.catalog.spark_catalog": "org.apache.spark.sql.delta.catalog.DeltaCatalog",
        "spark.databricks.delta.snapshotPartitions": "2",
        "spark.sql.catalog.lakes": "org.apache.iceberg.spark.SparkCatalog",
        "spark.sql.catalog.lakes.type": "hadoop",
        "spark.sql.catalog.lakes.warehouse": str(place / "warehouse"),
        f"{DELTA_DEFAULTS}.deletedFileRetentionDuration": "interval 0 hours",
        f"{ICEBERG_DEFAULTS}.history.expire.max-snapshot-age-ms": "1",
    }
    conf = place / "conf"
    conf.mkdir(parents=True, exist_ok=True)
    text = "".join(f"{name} {value}\n" for name, value in settings.items())
    (conf / "spark-defaults.conf").write_text(text)
    return conf


if __name__ == "__main__":
    prepare(Path(sys.argv[1]))
