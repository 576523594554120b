"""Counts the streams of masks that are made: one that masks two messages would show their difference."""

from confide.network import masking


def counted(monkeypatch):
    """Yields {key of a stream: how often it was made}; both ends of a pair make it, once each."""
    streams, made = {}, masking.stream

    def stream(secret, round, attempt, members, width):
        key = (secret, round, attempt, members)
        streams[key] = streams.get(key, 0) + 1
        return made(secret, round, attempt, members, width)

    monkeypatch.setattr(masking, "stream", stream)
    yield streams
    assert all(count <= 2 for count in streams.values())
