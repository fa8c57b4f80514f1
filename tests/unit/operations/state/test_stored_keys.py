from kops.operations.state.stored_keys import stored_key, suffix_length


def test_the_applications_own_key_and_what_is_around_it():
    window = b"key" + (1000).to_bytes(8, "big") + bytes(4)
    session = b"key" + (2000).to_bytes(8, "big") + (1000).to_bytes(8, "big")
    for kind, data in (("window", window), ("sliding-window", window), ("session", session), ("key-value", b"key"), ("versioned", b"key")):
        assert stored_key(kind, data).inner == b"key"
        assert data[: len(data) - suffix_length(kind)] == b"key"
    around = stored_key("window", window, 500).around
    assert (around["window_start"], around["window_end"]) == ("1970-01-01T00:00:01.000Z", "1970-01-01T00:00:01.500Z")
    assert stored_key("session", session).around["window_end"] == "1970-01-01T00:00:02.000Z"
    assert stored_key("window", b"short").inner == b"short"
