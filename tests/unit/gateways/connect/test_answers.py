"""Answers of Connect in shapes that nobody expects: shown as they are, or named in one line, never a bug of kops."""

import pytest

from support.faulty_connect import Answer, expanded, faulty_worker

__all__ = ["faulty_worker"]
SINK = {"s": expanded("s", "RUNNING")}
ABOUT = {"version": "4.3.1", "commit": "c0ffee", "kafka_cluster_id": "id"}
KNOWN = {"partition": {"kafka_topic": "orders", "kafka_partition": 0}, "offset": {"kafka_offset": 7}}
OTHERS = [
    {"partition": {"topic": "orders"}, "offset": {"position": 3}},
    {"partition": {"kafka_topic": "orders", "kafka_partition": "first"}, "offset": {"kafka_offset": "late"}},
    {"partition": {}, "offset": None},
]


@pytest.fixture
def ask(faulty_worker, run_kops, monkeypatch):
    """Run kops connect with these bodies as answers, one after the other."""

    def run(bodies, *arguments):
        monkeypatch.setenv("KOPS_CONNECT_URLS", faulty_worker(*(Answer(200, body) for body in bodies)).url)
        return run_kops("connect", *arguments)

    return run


def test_unexpected_sink_offsets_are_shown_unchanged(ask):
    answers = [SINK, {"offsets": [*OTHERS, KNOWN]}]
    rows = ask(answers, "offsets", "show", "s", "-o", "json").ok().json
    assert [row["partition"] for row in rows if row["lag"] is None] == [row["partition"] for row in rows]
    assert sorted(map(str, (row["partition"] for row in rows))) == sorted(str(one["partition"]) for one in (*OTHERS, KNOWN))
    table = ask(answers, "offsets", "show", "s").ok().out
    assert '{"topic":"orders"}' in table
    assert "orders:0" in table


def test_positions_keep_unexpected_sink_offsets(ask):
    """Those that are known can be reset by name; those that are not have no name, and no number to count from."""
    answers = [SINK, {"offsets": [*OTHERS, KNOWN]}, ABOUT]
    planned = ask(answers, "offsets", "reset", "s", "--topic", "orders", "--dry-run", "-o", "json").ok().json
    assert [item["target"] for item in planned["items"]] == ["s orders:0"]


@pytest.mark.parametrize("offsets", [["x"], [{"offset": {}}], [{"partition": "p"}], [{"partition": {}, "offset": 7}], "none", 7])
def test_malformed_offsets_are_rejected(ask, offsets):
    refused = ask([SINK, {"offsets": offsets}], "offsets", "show", "s")
    assert (refused.code, "answers GET /connectors/s/offsets in an unexpected format" in refused.err) == (1, True)
    assert "bug" not in refused.err


@pytest.mark.parametrize(
    ("arguments", "answers"),
    [
        (["list"], [{"s": "running"}]),
        (["status"], [{"s": {"status": {"tasks": [{"state": "RUNNING"}]}}}]),
        (["status"], [{"s": {"status": "RUNNING"}}]),
        (["plugins", "list"], [{"class": "a"}]),
        (["plugins", "list"], [[{"type": "sink"}]]),
        (["plugins", "list"], [None]),
        (["plugins", "describe", "a.B"], [[{"class": "a.B"}], [{"type": "STRING"}]]),
        (["loggers", "list"], [{"root": "INFO"}]),
        (["loggers", "list"], [{"root": {"last_modified": 1}}]),
        (["offsets", "show", "s"], [SINK, None]),
    ],
)
def test_malformed_answers_are_rejected(ask, arguments, answers):
    refused = ask(answers, *arguments)
    assert (refused.code, "in an unexpected format: " in refused.err) == (1, True)


def test_validation_without_definitions_is_rejected(ask, tmp_path):
    file = tmp_path / "c.yaml"
    file.write_text("name: s\nconnector.class: a.B\n")
    refused = ask([[{"class": "a.B"}], {"configs": [{"value": {}}]}], "validate", str(file))
    assert (refused.code, "in an unexpected format: " in refused.err) == (1, True)


def test_a_connector_without_an_answer_hides_no_other(faulty_worker, run_kops, monkeypatch):
    found = {name: expanded(name, "RUNNING", kind="source") for name in ("a", "b", "c")}
    offsets = {"offsets": [{"partition": {"file": "x"}, "offset": {"position": 1}}]}
    failure = Answer(500, {"error_code": 500, "message": "Failed to fetch offsets: x"})
    answers = (Answer(200, found), Answer(200, offsets), failure, Answer(200, offsets))
    monkeypatch.setenv("KOPS_CONNECT_URLS", faulty_worker(*answers).url)
    shown = run_kops("connect", "offsets", "show", "*", "-o", "json")
    assert [row["connector"] for row in shown.json] == ["a", "c"]
    assert (shown.code, "warning: b is missing: " in shown.err, "Failed to fetch offsets: x" in shown.err) == (6, True, True)
    monkeypatch.setenv("KOPS_CONNECT_URLS", faulty_worker(Answer(200, found), failure).url)
    alone = run_kops("connect", "offsets", "show", "b")
    assert (alone.code, "Failed to fetch offsets: x" in alone.err) == (1, True)


def test_a_connector_without_a_state_is_not_called_missing(ask):
    """Connect leaves it out of the list with states until a worker has read its first one."""
    refused = ask([SINK, ["new", "s"]], "pause", "new", "--yes")
    assert (refused.code, "Connect does not say the state of connector new yet" in refused.err) == (1, True)
    absent = ask([SINK, ["s"]], "pause", "new", "--yes")
    assert (absent.code, "new" in absent.err, "does not say" in absent.err) == (1, True, False)
