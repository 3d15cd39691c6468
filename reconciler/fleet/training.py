"""A small job that uses every feature of Spark that jobs use, to record the classes of its JVM.

`python -m reconciler.fleet.training ARCHIVE`
"""

from __future__ import annotations

import sys
import tempfile


def train(archive: str) -> None:
    """Join, group in Python over Arrow, write and read Parquet; then stop, which writes ARCHIVE."""
    from pyspark.sql import SparkSession
    from pyspark.sql import functions as F  # noqa: N812  # Spark's own abbreviation

    from reconciler.fleet.runtime import QUICK, isolated_workers, use_java
    from reconciler.fleet.session import COMMON, EMBEDDED, Interrupts

    use_java()
    options = " ".join((*QUICK, f"-XX:ArchiveClassesAtExit={archive}"))
    builder = SparkSession.builder.master("local[2]").appName("training")
    settings = {**COMMON, **EMBEDDED, "spark.sql.shuffle.partitions": "2"}
    for key, value in {**settings, "spark.driver.extraJavaOptions": options}.items():
        builder = builder.config(key, value)
    with isolated_workers(), Interrupts() as interrupts, interrupts.hold():
        session = builder.getOrCreate()
    rows = session.range(1000).select("id", (F.col("id") % 3).cast("string").alias("cluster"))
    rows = rows.withColumn("replicas", F.array(F.lit(1), F.col("id").cast("int")))
    with tempfile.TemporaryDirectory() as place:
        rows.write.partitionBy("cluster").parquet(f"{place}/rows")
        kept = session.read.parquet(f"{place}/rows")
        counts = kept.select("cluster", F.explode("replicas").alias("broker")).groupBy("cluster")
        joined = kept.join(counts.agg(F.count("broker").alias("n")), "cluster", how="left")
        joined.groupBy("cluster").applyInArrow(lambda table: table, schema=joined.schema).collect()
    session.stop()


if __name__ == "__main__":
    train(sys.argv[1])
