"""The bytes that Kafka Streams and Faust keep in their internal topics, one module per format. Pure, standard library only.

Decoders raise :class:`~kops.core.errors.UndecodableRecord` without naming the record, like those of ``kops.formats.base``.
Numbers are big-endian; times are milliseconds since the epoch; keys and values inside are bytes, of the application's own serdes.
"""
