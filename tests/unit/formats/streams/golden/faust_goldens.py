"""Writes faust.json: what real Faust tables put into their changelogs, with orjson and without.

pip install faust-streaming==0.15.3 orjson==3.13.0   # in an environment of its own
python faust_goldens.py orjson > with.json; python faust_goldens.py json > without.json
python faust_goldens.py merge with.json without.json > faust.json
"""

import importlib.metadata
import json
import sys
from pathlib import Path

TEXTS = ["", "k", "ключ", "日本語", "😀", 'a"b\\c/', "tab\tnl\n", "\u0000\u001f\u007f\u2028", "x" * 40]
NUMBERS = [0, 1, -1, 2**53, 2**63 - 1, -(2**63), 0.0, -0.0, 0.1, 109.9, 1700000000.0, 1700000009.9, 1e15, 1e16, 1.5e16, 1e22]
SMALL = [1e-3, 1e-4, 1e-5, 1.234e-5, -9.87654321e-5, 1e-6, 1.5e-7, 9e-9, 1e-9, 1e-10, 5e-324, 1e300]
OTHERS = [None, True, False, [], {}, [1, "e-05", [2.5]], {"ключ": {"a": [1.5e-5, None]}, "1e-07": 1e-7}]
WINDOWS = [("tumbling", 10.0, 10.0), ("tumbling", 60.0, 60.0), ("hopping", 5.0, 2.0), ("hopping", 30.0, 10.0)]
TIMES = [0.0, 4.2, 105.0, 1700000000.123, 1700000009.999]


def written(spelling):
    if spelling == "json":
        sys.modules["orjson"] = None
    import faust

    app = faust.App("golden", broker="kafka://unused:1", store="memory://")

    class Order(faust.Record, namespace="shop.Order"):
        item: str
        amount: int

    class Bare(faust.Record, include_metadata=False):
        item: str

    def table(name, **types):
        made = app.Table(name, partitions=1, **types)
        return made.changelog_topic, made

    def key_of(topic, made, key):
        return topic.prepare_key(key, made.key_serializer, None, {})[0].hex()

    def value_of(topic, made, value):
        return topic.prepare_value(value, made.value_serializer, None, {})[0].hex()

    plain, untyped, orders, bare = (
        table("plain", key_type=str),
        table("any"),
        table("orders", value_type=Order),
        table("bare", value_type=Bare),
    )
    cases = [{"kind": "text", "value": text, "bytes": key_of(*plain, text)} for text in TEXTS]
    cases += [
        {"kind": "value", "value": value, "bytes": value_of(*untyped, value)} for value in [*NUMBERS, *SMALL, *OTHERS] if value is not None
    ]
    for item in TEXTS:
        fields = {"item": item, "amount": 2}
        cases.append({"kind": "model", "namespace": "shop.Order", "value": fields, "bytes": value_of(*orders, Order(**fields))})
        cases.append({"kind": "model", "namespace": None, "value": {"item": item}, "bytes": value_of(*bare, Bare(item))})
    for number, (kind, size, step) in enumerate(WINDOWS):
        windowed = app.Table(f"windows{number}", key_type=str, value_type=int, partitions=1)
        windowed = windowed.tumbling(size) if kind == "tumbling" else windowed.hopping(size, step)
        made = windowed.table
        for time in TIMES:
            for start, end in made.window.ranges(time):
                key = key_of(made.changelog_topic, made, ("ключ", (start, end)))
                cases.append({"kind": "window", "value": "ключ", "start": start, "end": end, "size": size, "bytes": key})
    cases.append({"kind": "topic", "value": plain[0].get_topic_name(), "bytes": ""})
    version = importlib.metadata.version
    return {
        "faust-streaming": version("faust-streaming"),
        spelling: version("orjson") if spelling == "orjson" else sys.version.split()[0],
        "cases": cases,
    }


def merged(one, other):
    cases = []
    for case, same in zip(one["cases"], other["cases"], strict=True):
        assert {**case, "bytes": ""} == {**same, "bytes": ""}
        cases.append({**case, "bytes": {"orjson": case["bytes"], "json": same["bytes"]}})
    return {**one, **other, "cases": cases}


if __name__ == "__main__":
    result = (
        merged(*(json.loads(Path(name).read_text("utf-8")) for name in sys.argv[2:])) if sys.argv[1] == "merge" else written(sys.argv[1])
    )
    head = {name: value for name, value in result.items() if name != "cases"}
    lines = ",\n  ".join(json.dumps(case, ensure_ascii=False) for case in result["cases"])
    print(f'{{"versions": {json.dumps(head)}, "cases": [\n  {lines}\n]}}' if sys.argv[1] == "merge" else json.dumps(result))
