"""Reducers of the tests, the same as those in ``Topologies.java``."""


def concat(_key, value, aggregate):
    return value if aggregate is None else aggregate + value


def items(_key, value, aggregate):
    """``concat`` of the field ``item``."""
    return concat(_key, value["item"], aggregate)


class ConcatOrDelete:
    """An empty text deletes the key."""

    def initial(self):
        return ""

    def add(self, _key, value, aggregate):
        return aggregate + value if value else None


class Members:
    """What is in a group, in the order in which it came; taken out again, and gone when nothing is left."""

    def initial(self):
        return ""

    def add(self, _key, value, aggregate):
        return f"{aggregate}+{value['n']}"

    def remove(self, _key, value, aggregate):
        return aggregate.replace(f"+{value['n']}", "", 1) or None


def count_members(_key, _value, aggregate):
    return (aggregate or 0) + 1
