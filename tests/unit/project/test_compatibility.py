"""The page about versions of Kafka is what the run recorded, and no verb is left out of the run."""

from support.every_version import ELSEWHERE, LINES, PAGE, SERVED, VERBS, VERSIONS, numbers, page, recorded, versions_of


def test_every_verb_is_run_or_asks_no_brokers():
    run = {line.verb for line in LINES}
    elsewhere = {verb for verb in VERBS if verb in ELSEWHERE or verb.partition(" ")[0] in ELSEWHERE}
    assert run | elsewhere == set(VERBS)
    assert run & elsewhere == set()
    assert {what for what in ELSEWHERE if not any(f"{verb} ".startswith(f"{what} ") for verb in VERBS)} == set()


def test_the_record_has_every_verb_on_each_version_that_was_run():
    assert list(recorded()) == [verb for verb in VERBS if any(line.verb == verb for line in LINES)]
    versions = versions_of(recorded())
    assert {tuple(found) for found in recorded().values()} == {versions}
    assert versions == tuple(version for version in VERSIONS if version in versions)


def test_a_verb_names_the_first_version_that_serves_it_as_far_as_that_was_run():
    for verb, found in recorded().items():
        needed = {answer for answer in found.values() if answer != SERVED}
        assert len(needed) < 2, (verb, found)
        for version, answer in found.items():
            old = numbers(version) < numbers(next(iter(needed), "0"))
            # With ZooKeeper 2.8 has what KRaft got later: users log in by SCRAM.
            assert old == (answer != SERVED) or version == VERSIONS[0], (verb, found)


def test_the_page_is_what_was_recorded():
    assert PAGE.read_text("utf-8") == page(recorded())
