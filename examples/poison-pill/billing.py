"""Books payments: python billing.py HOST:PORT [PREFIX]. It stops at what it does not understand, as it must not lose any."""

import json
import signal
import sys

from confluent_kafka import Consumer


def main(servers: str, prefix: str = "") -> None:
    """Write a line for each payment, and commit it, until it is ended."""
    settings = {"bootstrap.servers": servers, "group.id": f"{prefix}billing", "auto.offset.reset": "earliest", "enable.auto.commit": False}
    signal.signal(signal.SIGTERM, lambda *_: sys.exit())
    consumer = Consumer({**settings, "session.timeout.ms": 6000})
    consumer.subscribe([f"{prefix}payments"])
    try:
        while True:
            message = consumer.poll(1)
            if message is None:
                continue
            if message.error():
                raise SystemExit(str(message.error()))
            payment = json.loads(message.value())
            print(payment["customer"], payment["amount"], flush=True)
            consumer.commit(message, asynchronous=False)
    finally:
        consumer.close()


if __name__ == "__main__":
    main(*sys.argv[1:])
