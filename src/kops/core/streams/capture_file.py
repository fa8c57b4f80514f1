"""The file that ``kops streams capture`` writes, which ``java/agent`` makes: read, with errors that say where. Pure."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from dataclasses import dataclass, fields
from typing import Any, TypeVar

from kops.core.errors import ConfigError
from kops.core.secret_shapes import without_secret_words, without_secrets
from kops.core.streams.capture import (
    Capture,
    ClassPathEntry,
    Coder,
    InternalTopic,
    Node,
    Processor,
    RocksDBSetter,
    Settings,
    Sink,
    Source,
    Store,
    Subtopology,
    Windows,
)
from kops.core.streams.surroundings import Read, Surroundings

FORMAT = "kops-capture"
VERSION = 2

_AGAIN = "capture the program again: kops streams capture --out FILE -- COMMAND"
_T = TypeVar("_T")


def read_capture(body: Any, path: str) -> Capture:
    """Read a capture from the JSON of its file.

    :param path: of the file, for errors
    :raises ConfigError: when it is not one, is of another version, or lacks something; it says what and where
    """
    top = _At(body, path)
    if not isinstance(body, dict) or body.get("format") != FORMAT:
        raise ConfigError(f"{path} is not a capture of a program", hint=_AGAIN)
    version = top.get("version", int)
    if version != VERSION:
        age = "a newer" if version > VERSION else "an older"
        raise ConfigError(f"{path} was captured by {age} kops: it is of version {version}, not {VERSION}", hint=_AGAIN)
    config, class_path = top.at("config"), top.at("class_path")
    return Capture(
        application=top.get("application_id", str),
        streams_version=top.at("library").maybe("streams", str),
        command=top.texts("command"),
        description=top.get("description", str),
        subtopologies=tuple(map(_subtopology, top.each("subtopologies"))),
        nodes=tuple(map(_node, top.each("nodes"))),
        stores=tuple(map(_store, top.each("stores"))),
        global_stores=tuple(map(_store, top.each("global_stores"))),
        settings=Settings(
            config.get("given", dict), config.get("effective", dict), config.maybe("main_consumer", dict), config.maybe("producer", dict)
        ),
        class_path=tuple(ClassPathEntry(entry.get("path", str), entry.maybe("sha256", str)) for entry in class_path.each("entries")),
        class_path_sha256=class_path.get("sha256", str),
        surroundings=_surroundings(top.at("surroundings")),
        unknown=tuple((each.get("what", str), each.get("why", str)) for each in top.each("unknown")),
        folder=top.at("java").maybe("folder", str),
        java_version=top.at("java").maybe("version", str),
        client_supplier=top.maybe("client_supplier", str),
        rocksdb_setter=top.one("rocksdb_setter", lambda at: RocksDBSetter(at.get("class", str), at.maybe_texts("mentions"))),
    )


def _surroundings(found: _At) -> Surroundings:
    return Surroundings(
        charset=found.get("charset", str),
        zone=found.get("zone", str),
        java=found.get("java", str),
        locale=found.get("locale", dict),
        options=found.texts("options"),
        variables=found.get("variables", dict),
        properties=found.get("properties", dict),
        read=tuple(
            Read(
                kind=each.get("kind", str),
                name=each.get("name", str),
                digest=each.maybe("digest", str),
                by=each.get("by", str),
                how=each.get("how", str),
            )
            for each in found.each("read")
        ),
    )


def public_capture(body: Any) -> Any:
    """Return what the agent wrote without texts that look like secrets; those with a secret's name it has taken out itself."""
    if isinstance(body, str):
        return without_secrets(body)
    if isinstance(body, dict) and isinstance(body.get("command"), list):
        body = {**body, "command": without_secret_words(body["command"])}
    if isinstance(body, list):
        return [public_capture(each) for each in body]
    return {key: public_capture(value) for key, value in body.items()} if isinstance(body, dict) else body


@dataclass(frozen=True)
class _At:
    """A place in a file."""

    body: Any
    place: str

    def at(self, key: str) -> _At:
        return _At(self.get(key, dict), f"{self.place}: {key}")

    def get(self, key: str, kind: type[_T]) -> _T:
        found = self.maybe(key, kind)
        if found is None:
            raise ConfigError(f"{self.place} has no {key}", hint=_AGAIN)
        return found

    def maybe(self, key: str, kind: type[_T]) -> _T | None:
        """Return a value; None where it is null or absent."""
        if not isinstance(self.body, dict):
            raise ConfigError(f"{self.place} is not an object", hint=_AGAIN)
        found = self.body.get(key)
        if found is None:
            return None
        if not isinstance(found, kind) or (kind is int and isinstance(found, bool)):
            raise ConfigError(f"{self.place}: {key} is {type(found).__name__}, not {kind.__name__}", hint=_AGAIN)
        return found

    def texts(self, key: str) -> tuple[str, ...]:
        found = self.get(key, list)
        for each in found:
            if not isinstance(each, str):
                raise ConfigError(f"{self.place}: {key} holds {each!r}, which is not text", hint=_AGAIN)
        return tuple(found)

    def maybe_texts(self, key: str) -> tuple[str, ...] | None:
        return None if self.maybe(key, list) is None else self.texts(key)

    def each(self, key: str) -> Iterator[_At]:
        for number, body in enumerate(self.maybe(key, list) or ()):
            name = (body.get("name") if isinstance(body, dict) else None) or number
            yield _At(body, f"{self.place}: {key}: {name}")

    def one(self, key: str, read: Callable[[_At], _T]) -> _T | None:
        return None if self.maybe(key, dict) is None else read(self.at(key))


def _subtopology(found: _At) -> Subtopology:
    return Subtopology(
        number=found.get("id", int),
        is_global=found.get("global", bool),
        nodes=found.texts("nodes"),
        source_topics=found.maybe_texts("source_topics"),
        sink_topics=found.maybe_texts("sink_topics"),
        repartition_topics=tuple(map(_internal_topic, found.each("repartition_topics"))),
        changelogs=tuple(map(_internal_topic, found.each("changelogs"))),
    )


def _internal_topic(found: _At) -> InternalTopic:
    return InternalTopic(
        found.get("name", str), found.maybe("settings", dict), found.maybe("partitions", int), found.maybe("is_source_topic", bool) or False
    )


def _node(found: _At) -> Node:
    kind, name = found.get("type", str), found.get("name", str)
    if kind == "source":
        return Source(
            name=name,
            topics=found.texts("topics"),
            pattern=found.maybe("pattern", str),
            reset=found.get("reset", dict),
            timestamp_extractor=found.maybe("timestamp_extractor", str),
            key=found.one("key_deserializer", _coder),
            value=found.one("value_deserializer", _coder),
        )
    if kind == "sink":
        return Sink(
            name=name,
            predecessors=found.texts("predecessors"),
            topic=found.maybe("topic", str),
            internal=found.get("internal", bool),
            partitioner=found.maybe("partitioner", str),
            key=found.one("key_serializer", _coder),
            value=found.one("value_serializer", _coder),
        )
    if kind != "processor":
        raise ConfigError(f"{found.place}: type is {kind!r}, and not source, processor or sink", hint=_AGAIN)
    return Processor(
        name=name,
        predecessors=found.texts("predecessors"),
        supplier=found.maybe("supplier", str),
        processor=found.maybe("processor", str),
        program_class=found.get("program_class", bool),
        mentions=found.maybe_texts("mentions") or (),
        stores=found.texts("stores"),
        windows=tuple(map(_windows, found.each("windows"))),
        suppresses=found.maybe("suppress", dict) is not None,
        emits_on_close=found.maybe("emit", str) == "ON_WINDOW_CLOSE",
        functions=found.maybe("functions", dict) or {},
        left_join=found.maybe("left_join", bool),
    )


def _windows(found: _At) -> Windows:
    numbers = {field.name: found.maybe(field.name, int) for field in fields(Windows) if field.name != "name"}
    return Windows(found.get("class", str), **numbers)


def _store(found: _At) -> Store:
    return Store(
        name=found.get("name", str),
        kind=found.maybe("kind", str),
        builder=found.maybe("builder", str),
        layers=found.texts("layers"),
        persistent=found.maybe("persistent", bool),
        caching=found.maybe("caching", bool),
        changelog=found.maybe("changelog", str),
        headers=found.get("headers", bool),
        key=found.one("key_serde", _deserializer),
        value=found.one("value_serde", _deserializer),
        retention_ms=found.maybe("retention_ms", int),
        window_size_ms=found.maybe("window_size_ms", int),
        retain_duplicates=found.maybe("retain_duplicates", bool),
        history_retention_ms=found.maybe("history_retention_ms", int),
        grace_ms=found.maybe("grace_ms", int),
        capacity=found.maybe("capacity", int),
        processors=found.maybe_texts("processors"),
    )


def _deserializer(found: _At) -> Coder | None:
    return found.one("deserializer", _coder)


def _coder(found: _At) -> Coder:
    inner = found.maybe("inner", dict) or {}
    wrapped = _At(inner, f"{found.place}: inner")
    return Coder(found.get("class", str), {key: wrapped.one(key, _coder) for key in inner})
