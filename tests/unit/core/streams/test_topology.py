"""Descriptions that are not as the library prints them."""

import pytest

from kops.core.errors import ConfigError
from kops.core.streams.topology import parse_topology

TEXT = """Topologies:
   Sub-topology: 0
    Source: KSTREAM-SOURCE-0000000000 (topics: [in])
      --> KSTREAM-AGGREGATE-0000000001
    Processor: KSTREAM-AGGREGATE-0000000001 (stores: [counts])
      --> none
      <-- KSTREAM-SOURCE-0000000000
"""


def test_what_stands_around_it_is_passed_over():
    plain = parse_topology(TEXT)
    assert parse_topology(f"started\n2026-11-21 INFO {TEXT}\nnothing more\n".replace("\n", "\r\n")) == plain
    assert plain.sources_of("counts")[0].topics == ("in",)


@pytest.mark.parametrize("text", ["", "Topologies:\n", "Sub-topology: 0\n", "a state file\nstores: {}"])
def test_a_file_without_a_topology_is_an_error_that_names_it(text):
    with pytest.raises(ConfigError, match=r"topology\.txt holds no description"):
        parse_topology(text, "topology.txt")


def test_a_cut_line_is_an_error_with_its_number():
    with pytest.raises(ConfigError, match="line 5 is not as"):
        parse_topology(TEXT.replace(" (stores: [counts])", " (stores: [cou"), "topology.txt")
