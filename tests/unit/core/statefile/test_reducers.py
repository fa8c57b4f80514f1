import pickle

import pytest

from kops.core.errors import ConfigError
from kops.core.statefile.reducers import Aggregate, as_reducer, fold, load_reducer, step
from kops.operations.engine.state_files import read_state_file


class Sum:
    def initial(self):
        return 0

    def add(self, key, value, aggregate):
        return None if value == "forget" else aggregate + value


class Needy:
    def __init__(self, something):
        pass


def largest(key, value, aggregate):
    return value if aggregate is None else max(value, aggregate)


SUM = Sum()


def test_first_record_gives_its_timestamp_and_later_ones_the_greatest():
    assert fold(SUM, "k", [(2000, 100), (2000, 90), (2000, 105)]) == Aggregate(6000, 105)


def test_null_key_or_value_is_dropped():
    assert step(SUM, None, 1, 5, None) is None
    assert step(SUM, "k", None, 50, Aggregate(1, 5)) == Aggregate(1, 5)


def test_none_is_a_tombstone_with_the_records_timestamp_and_what_follows_starts_afresh():
    assert fold(SUM, "k", [(5, 100), ("forget", 90)]) == Aggregate(None, 90)
    assert fold(SUM, "k", [(5, 100), ("forget", 90), (7, 80)]) == Aggregate(7, 80)


def test_a_function_starts_from_the_first_value():
    assert fold(as_reducer(largest, "largest"), "k", [(3, 1), (9, 2), (4, 3)]) == Aggregate(9, 3)


def test_load_by_reference():
    assert load_reducer("operator:attrgetter.__call__") is not None
    with pytest.raises(ConfigError, match="cannot import the reducer no_such_module:x"):
        load_reducer("no_such_module:x")
    with pytest.raises(ConfigError, match="does not name a reducer"):
        load_reducer("largest")


@pytest.mark.parametrize("thing", [42, Needy])
def test_other_things_are_refused(thing):
    with pytest.raises(ConfigError, match="reducer"):
        as_reducer(thing, "thing")


def test_a_class_is_made():
    assert fold(as_reducer(Sum, "Sum"), "k", [(1, 1)]) == Aggregate(1, 1)


def test_a_reducer_beside_the_state_file_goes_along_with_its_source(tmp_path):
    (tmp_path / "red_beside.py").write_text("LOW = 0\n\ndef highest(key, value, aggregate):\n    return max(value, aggregate or LOW)\n")
    file = tmp_path / "state.yaml"
    body = (
        "{application: a, stores: {s: {from: {topic: t, key: string, value: long}, aggregate: {reducer: 'red_beside:highest', as: long}}}}"
    )
    file.write_text(body)
    reference = read_state_file(str(file)).stores[0].aggregate.expression
    assert reference == "red_beside:highest"
    (tmp_path / "red_beside.py").unlink()
    carried = pickle.loads(pickle.dumps(reference))
    assert load_reducer(carried).add("k", 7, 5) == 7
    with pytest.raises(ConfigError, match="cannot import the reducer") as refused:
        read_state_file(str(file))
    assert "red_beside.py next to the state file" in refused.value.hint
