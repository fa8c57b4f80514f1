"""Which certificates of servers are accepted: by every client of kops those that Java accepts, whatever the Python version."""

from __future__ import annotations

import ssl


def accept_as_java(context: ssl.SSLContext) -> ssl.SSLContext:
    """Return the context, which from now on verifies certificates as Java's PKIX does.

    Python 3.13 demands all of RFC 5280 (``VERIFY_X509_STRICT``), which authorities made with ``keytool``, and those of many companies, do
    not fulfil; Java and librdkafka do not ask for it. To Java each certificate in a trust store is an anchor, self-signed or not.
    """
    context.verify_flags &= ~ssl.VERIFY_X509_STRICT
    context.verify_flags |= ssl.VERIFY_X509_PARTIAL_CHAIN
    return context
