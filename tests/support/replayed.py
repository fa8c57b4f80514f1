"""Functions that change what is replayed, as `kops replay run --plugin` takes them."""


def shouted(records):
    """Return each record twice, the second time with its value in capitals; those of even offsets only."""
    return records.where("offset % 2 = 0").selectExpr(
        "partition",
        "offset",
        "key",
        "explode(array(value, cast(upper(cast(value as string)) as binary))) as value",
        "timestamp_ms",
        "headers",
    )


def shuffled(records):
    """Return the records in another order."""
    return records.orderBy("value")


def poor(records):
    """Return too little."""
    return records.select("key")
