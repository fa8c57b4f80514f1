import pytest

from kops.core.errors import UsageProblem
from kops.operations.state.repartition_inputs import parse_replaced_inputs


def test_inputs_in_place_of_others():
    assert parse_replaced_inputs(["a=b", "c=d"]) == {"a": "b", "c": "d"}
    for wrong in ("a", "a=", "=b"):
        with pytest.raises(UsageProblem):
            parse_replaced_inputs([wrong])
