"""Headers that the libraries' own classes wrote (``tests/connect/test_dead_letter_libraries.py`` compares), traces shortened."""

Headers = list[tuple[str, bytes]]
RECORDED: dict[str, Headers] = {
    "kafka-streams": [
        ("trace-id", b"t1"),
        ("__streams.errors.exception", b"java.lang.RuntimeException"),
        ("__streams.errors.message", b"Listener failed"),
        (
            "__streams.errors.stacktrace",
            b"\n".join(
                (
                    b"java.lang.RuntimeException: Listener failed",
                    b"\tat StreamsLetters.main(StreamsLetters.java:14)",
                    b"Caused by: java.lang.IllegalStateException: customer 17 is unknown",
                )
            ),
        ),
        ("__streams.errors.topic", b"orders"),
        ("__streams.errors.partition", b"3"),
        ("__streams.errors.offset", b"77"),
    ],
    "spring": [
        ("trace-id", b"t1"),
        ("kafka_dlt-exception-fqcn", b"org.springframework.kafka.listener.ListenerExecutionFailedException"),
        ("kafka_dlt-exception-cause-fqcn", b"java.lang.IllegalStateException"),
        ("kafka_dlt-exception-message", b"Listener failed; customer 17 is unknown"),
        (
            "kafka_dlt-exception-stacktrace",
            b"\n".join(
                (
                    b"org.springframework.kafka.listener.ListenerExecutionFailedException: Listener failed",
                    b"\tat org.springframework.cloud.stream.binder.kafka.SpringLetters.main(SpringLetters.java:78)",
                    b"Caused by: java.lang.IllegalStateException: customer 17 is unknown",
                )
            ),
        ),
        ("kafka_dlt-original-topic", b"orders"),
        ("kafka_dlt-original-partition", b"\x00\x00\x00\x03"),
        ("kafka_dlt-original-offset", b"\x00\x00\x00\x00\x00\x00\x00M"),
        ("kafka_dlt-original-timestamp", b"\x00\x00\x01\x8b\xcf\xe5h\x00"),
        ("kafka_dlt-original-timestamp-type", b"CreateTime"),
        ("kafka_dlt-original-consumer-group", b"billing"),
    ],
    "spring-retried": [
        ("trace-id", b"t1"),
        ("kafka_original-topic", b"orders"),
        ("kafka_original-partition", b"\x00\x00\x00\x03"),
        ("kafka_original-offset", b"\x00\x00\x00\x00\x00\x00\x00M"),
        ("kafka_original-timestamp", b"\x00\x00\x01\x8b\xcf\xe5h\x00"),
        ("kafka_original-timestamp-type", b"CreateTime"),
        ("kafka_dlt-original-consumer-group", b"billing"),
        ("retry_topic-original-timestamp", b"\x01\x8b\xcf\xe5h\x00"),
        ("retry_topic-attempts", b"\x00\x00\x00\x02"),
        ("retry_topic-backoff-timestamp", b"\x01\xa2\x1d\xb0:\xfd"),
        ("kafka_exception-fqcn", b"org.springframework.kafka.listener.ListenerExecutionFailedException"),
        ("kafka_exception-cause-fqcn", b"java.lang.IllegalStateException"),
        ("kafka_exception-message", b"Listener failed; customer 17 is unknown"),
        (
            "kafka_exception-stacktrace",
            b"\n".join(
                (
                    b"org.springframework.kafka.listener.ListenerExecutionFailedException: Listener failed",
                    b"\tat org.springframework.cloud.stream.binder.kafka.SpringLetters.main(SpringLetters.java:78)",
                    b"Caused by: java.lang.IllegalStateException: customer 17 is unknown",
                )
            ),
        ),
        ("retry_topic-original-timestamp", b"\x01\x8b\xcf\xe5h\x00"),
        ("retry_topic-attempts", b"\x00\x00\x00\x03"),
        ("retry_topic-backoff-timestamp", b"\x01\xa2\x1d\xb0;S"),
    ],
    "spring-cloud-stream": [
        ("trace-id", b"t1"),
        ("x-original-topic", b"orders"),
        ("x-original-partition", b"\x00\x00\x00\x03"),
        ("x-original-offset", b"\x00\x00\x00\x00\x00\x00\x00M"),
        ("x-original-timestamp", b"\x00\x00\x01\x8b\xcf\xe5h\x00"),
        ("x-original-timestamp-type", b"CreateTime"),
        ("x-exception-fqcn", b"org.springframework.kafka.listener.ListenerExecutionFailedException"),
        ("x-exception-message", b"Listener failed; customer 17 is unknown"),
        (
            "x-exception-stacktrace",
            b"\n".join(
                (
                    b"org.springframework.kafka.listener.ListenerExecutionFailedException: Listener failed",
                    b"\tat org.springframework.cloud.stream.binder.kafka.SpringLetters.main(SpringLetters.java:78)",
                    b"Caused by: java.lang.IllegalStateException: customer 17 is unknown",
                )
            ),
        ),
    ],
    "smallrye": [
        ("dead-letter-exception-class-name", b"java.lang.RuntimeException"),
        ("dead-letter-reason", b"cannot bill"),
        ("dead-letter-cause-class-name", b"java.lang.IllegalStateException"),
        ("dead-letter-cause", b"customer 17 is unknown"),
        ("dead-letter-topic", b"orders"),
        ("dead-letter-partition", b"3"),
        ("dead-letter-offset", b"77"),
        ("trace-id", b"t1"),
    ],
    "smallrye-again": [
        ("dead-letter-exception-class-name", b"java.lang.RuntimeException"),
        ("dead-letter-reason", b"cannot bill"),
        ("dead-letter-cause-class-name", b"java.lang.IllegalStateException"),
        ("dead-letter-cause", b"customer 17 is unknown"),
        ("dead-letter-topic", b"orders"),
        ("dead-letter-partition", b"3"),
        ("dead-letter-offset", b"77"),
        ("dead-letter-exception-class-name", b"java.lang.RuntimeException"),
        ("dead-letter-reason", b"cannot bill"),
        ("dead-letter-cause-class-name", b"java.lang.IllegalStateException"),
        ("dead-letter-cause", b"customer 17 is first"),
        ("dead-letter-topic", b"earlier"),
        ("dead-letter-partition", b"1"),
        ("dead-letter-offset", b"5"),
        ("trace-id", b"t1"),
    ],
    "smallrye-retried": [
        ("delayed-retry-exception-class-name", b"java.lang.RuntimeException"),
        ("delayed-retry-reason", b"cannot bill"),
        ("delayed-retry-cause-class-name", b"java.lang.IllegalStateException"),
        ("delayed-retry-cause", b"customer 17 is unknown"),
        ("delayed-retry-topic", b"orders_retry_1000"),
        ("delayed-retry-partition", b"3"),
        ("delayed-retry-offset", b"5"),
        ("delayed-retry-exception-class-name", b"java.lang.RuntimeException"),
        ("delayed-retry-reason", b"cannot bill"),
        ("delayed-retry-cause-class-name", b"java.lang.IllegalStateException"),
        ("delayed-retry-cause", b"customer 17 is first"),
        ("delayed-retry-topic", b"orders"),
        ("delayed-retry-partition", b"3"),
        ("delayed-retry-offset", b"77"),
        ("trace-id", b"t1"),
        ("delayed-retry-original-timestamp", b"1700000000000"),
        ("delayed-retry-first-processing-timestamp", b"1795794461438"),
        ("delayed-retry-count", b"0"),
    ],
}
WITH_TIMES = ("retry_topic-backoff-timestamp", "delayed-retry-first-processing-timestamp")
"""Headers with the time of the failure."""
