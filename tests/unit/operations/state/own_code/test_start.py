"""Where Spark cannot run a program, before it starts."""

from types import SimpleNamespace

import pytest

from kops.core.errors import Refused
from kops.operations.state.own_code import start
from kops.operations.state.own_code.start import ProgramRun, engine_for


@pytest.fixture
def engine(monkeypatch):
    monkeypatch.setattr(start, "start_engine", lambda _services, master: f"started at {master}")

    def run(program, master):
        services = SimpleNamespace(connection=SimpleNamespace(spark=SimpleNamespace(master=None)))
        return engine_for(services, program, master)

    return run


def test_a_program_has_no_network_on_this_machine_only(engine):
    alone = ProgramRun(None, alone=("unshare",))
    with pytest.raises(Refused, match="--no-network is only for a program that runs on this machine, and Spark is at yarn"):
        engine(alone, "yarn")
    assert engine(alone, "local[2]") == "started at local[2]"
    assert engine(ProgramRun(None), "yarn") == "started at yarn"
    assert engine(ProgramRun(None), "sc://spark:15002") == "started at sc://spark:15002"
