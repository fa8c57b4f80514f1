"""Tasks that Spark only starts: their answers, and what is reported of one that fails."""

import os
from functools import partial
from pathlib import Path

import pytest

from kops.core.errors import OperationFailed
from kops.spark.replay.tasks import run

pytestmark = pytest.mark.spark


def test_answers_keep_the_order_of_the_tasks(spark):
    assert run(spark.sparkContext, [partial(pow, 2, number) for number in range(7)]) == [2**number for number in range(7)]
    assert run(spark.sparkContext, []) == []


def test_failing_task_is_reported_and_the_others_finish(spark, tmp_path):
    finishing = [partial(Path.touch, tmp_path / str(number)) for number in range(3)]
    with pytest.raises(OperationFailed, match=r"ValueError: invalid literal for int\(\) with base 10: 'x'"):
        run(spark.sparkContext, [partial(int, "x"), *finishing])
    assert len(list(tmp_path.iterdir())) == len(finishing)


def test_worker_that_ends_is_reported(spark):
    with pytest.raises(OperationFailed, match=r"could not run the tasks of a replay: a Python worker of Spark ended unexpectedly"):
        run(spark.sparkContext, [partial(os._exit, 3)])
