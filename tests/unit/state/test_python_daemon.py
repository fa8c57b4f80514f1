"""Where Python's workers look for modules."""

import sys

from kops.spark.python_daemon import without_archives


def test_archives_are_left_out_where_all_is_there_without_them():
    archives = ["/spark/python/lib/pyspark.zip", "/spark/jars/spark-core.jar"]
    assert without_archives([*archives, *sys.path]) == [place for place in sys.path if not place.endswith(".zip")]


def test_archives_stay_where_pyspark_comes_from_one():
    only = ["/spark/python/lib/pyspark.zip", "/spark/python/lib/py4j.zip", "/usr/lib/nothing"]
    assert without_archives(only) == only
