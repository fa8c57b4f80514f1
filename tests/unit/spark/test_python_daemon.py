"""Where Python's workers look for modules."""

import sys

from kops.spark.python_daemon import without_archives


def test_archives_are_left_out_where_all_is_there_without_them():
    archives = ["/spark/python/lib/pyspark.zip", "/spark/python/lib/py4j-0.10.9.9-src.zip", "/spark/jars/spark-core_2.13-4.0.0.jar"]
    own = ["/srv/reducers.zip", *sys.path]
    assert without_archives([*archives, *own]) == own


def test_archives_stay_where_pyspark_comes_from_one():
    only = ["/spark/python/lib/pyspark.zip", "/spark/python/lib/py4j-1-src.zip", "/usr/lib/nothing"]
    assert without_archives(only) == only
