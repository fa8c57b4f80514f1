"""The bytes that Kafka Streams and Faust keep in their internal topics, one module a format. Pure, standard library only.

Decoders raise :class:`~kops.core.errors.UndecodableRecord` without saying which record, as those of ``kops.formats.base`` do.
Numbers are big-endian; times are milliseconds since the epoch; keys and values inside are bytes, of the application's own serdes.
"""
