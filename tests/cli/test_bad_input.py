"""What is wrong by itself is refused before any broker is asked: at an address that nothing listens at, that would be exit 3."""

import pytest

BAD = """
topics list --regex (
topics describe
topics alter t --config retention.ms=7x
topics alter t
topics add-partitions t --partitions 0
topics offsets orders:x
topics offsets orders --at nonsense
topics truncate orders --before nonsense
topics delete --regex (
groups list --regex (
groups list --state nonsense
groups describe --regex (
groups lag --regex (
groups lag g --max-time x
groups delete --regex (
offsets show g --topic orders:x
offsets export --regex (
offsets reset --regex ( --topic orders --to-latest
offsets reset g --topic orders:x --to-latest
offsets reset g --topic orders --to-datetime nonsense
offsets reset g --topic orders --to-latest --wait-empty x
offsets seek g orders:0=x
offsets copy g h --topic orders:x
offsets copy g g
offsets delete g --topic orders:x
offsets history g --since x
records consume orders:x
records consume orders nonsense..
records consume orders --filter nonsense
records produce orders:x
records peek g --value nonsense
streams reset app --to-datetime nonsense
streams reset app --wait-empty x
streams delete app --wait-empty x
streams describe app --store x
diagnose --sample x
replay run --from orders --to copy --range nonsense
schemas show s --version x
"""


@pytest.mark.parametrize("command", BAD.strip().splitlines())
def test_bad_input_is_refused_without_any_broker(run_kops, command):
    refused = run_kops(*command.split(), "-B", "127.0.0.1:1", "--timeout", "3")
    assert refused.code == 2, refused.err
