"""Strangers at the door: they cost a few sockets, are counted and said once a minute, and neighbours come in."""

import asyncio
import logging
import resource
import socket
import ssl
import subprocess
import sys
from dataclasses import replace

import numpy as np
import pytest
from ports import free_port
from waiting import until

from confide.network import door, wire
from confide.network.channel import listener
from confide.network.identity import Identity
from confide.network.link import Link
from confide.network.peer import Server

RUN, WIDTH = bytes(range(32)), 3


@pytest.fixture
def people(tmp_path):
    return [Identity.create(tmp_path / name, name, f"127.0.0.1:{free_port()}") for name in ("ash", "birch")]


def served(people, body):
    """Run body(server, address) with ash serving birch one round."""
    ash, birch = people

    async def main():
        frame = wire.pack(ash, RUN, 1, np.ones(WIDTH).tobytes())
        server = Server(ash, {"birch": birch.card}, RUN, 1, lambda t: frame)
        await server.start(ash.card.address)
        server.publish(1)
        try:
            await body(server, listener(ash.card.address))
        finally:
            await server.stop(0)

    asyncio.run(main())


async def fetched(people):
    ash, birch = people
    link = Link(birch, ash.card, RUN, wire.frame_size(WIDTH))
    frame = await asyncio.wait_for(link.fetch(1, lambda frame: wire.unpack(frame, ash.card, RUN, 1, WIDTH)), 120)
    await link.close()
    return frame


@pytest.mark.parametrize("known", [True, False], ids=["from a neighbour's address", "from elsewhere"])
def test_fifteen_hundred_idle_connections_do_not_keep_a_neighbour_out(people, known, caplog):
    """More than a process has descriptors for, as it begins; in the one case they share the neighbour's address."""
    caplog.set_level(logging.WARNING)
    limits = resource.getrlimit(resource.RLIMIT_NOFILE)

    async def body(server, address):
        if not known:
            server._door.known.clear()
        flood = []
        for _ in range(1500):
            one = socket.socket()
            one.setblocking(False)
            one.connect_ex(address)
            flood.append(one)
            if len(flood) % 50 == 0:
                await asyncio.sleep(0.005)
        try:
            assert wire.source(await fetched(people)) == (people[0].card.digest, 1)
            await until(lambda: server.refused >= 1500 - door.PLACES)
            assert sum(map(len, server._door._rows.values())) <= (door.PLACES if known else door.EACH)
            assert wire.source(await fetched(people)) == (people[0].card.digest, 1)
        finally:
            for one in flood:
                one.close()

    resource.setrlimit(resource.RLIMIT_NOFILE, (min(4096, limits[1]), limits[1]))
    try:
        served(people, body)
    finally:
        resource.setrlimit(resource.RLIMIT_NOFILE, limits)
    assert len([r for r in caplog.records if "turned away" in r.message]) == 1  # not a line each


def test_who_does_not_speak_or_finish_a_handshake_is_hung_up_on(people, monkeypatch):
    monkeypatch.setattr(door, "DEADLINE", 0.3)

    async def body(server, address):
        silent, half = socket.create_connection(address), socket.create_connection(address)
        half.sendall(b"\x16\x03\x01\x02\x00\x01\x00\x01\xfc\x03\x03")  # the beginning of a ClientHello
        for one in (silent, half):
            one.setblocking(False)
            assert await asyncio.wait_for(asyncio.get_running_loop().sock_recv(one, 100), 120) == b""
            one.close()
        assert server.refused == 2 and not any(server._door._rows.values())

    served(people, body)


def test_tls_1_2_is_refused(people):
    """By the negotiated version: the same client speaks 1.3 without trouble."""
    from confide.network.channel import context

    ash, birch = people
    host, port = listener(ash.card.address)

    async def body(server, address):
        async def versions(lowest, highest):
            tls = context(birch, [ash.card], server=False)
            tls.minimum_version, tls.maximum_version = lowest, highest
            _, writer = await asyncio.open_connection(host, port, ssl=tls, server_hostname="ash")
            spoken = writer.get_extra_info("ssl_object").version()
            writer.close()
            return spoken

        with pytest.raises((ssl.SSLError, ConnectionError)):
            await versions(ssl.TLSVersion.TLSv1_2, ssl.TLSVersion.TLSv1_2)
        assert await versions(ssl.TLSVersion.TLSv1_2, ssl.TLSVersion.TLSv1_3) == "TLSv1.3"
        assert server.refused == 1

    served(people, body)


def test_who_listens_on_the_line_reads_neither_numbers_nor_certificates(people):
    """Between the two stands a wire that keeps all it passes on: no run of 8 bytes, which is one number, is in it."""
    ash, birch = people
    kept, ended = [], []

    async def body(server, address):
        async def passing(reader, writer):
            there, back = await asyncio.open_connection(*address)

            async def pump(source, sink):
                while data := await source.read(65536):
                    kept.append(data)
                    sink.write(data)
                sink.close()

            await asyncio.gather(pump(reader, back), pump(there, writer), return_exceptions=True)
            await asyncio.gather(back.wait_closed(), writer.wait_closed(), return_exceptions=True)
            ended.append(True)

        line = await asyncio.start_server(passing, "127.0.0.1", 0)
        host, port = line.sockets[0].getsockname()
        link = Link(birch, replace(ash.card, address=f"{host}:{port}"), RUN, wire.frame_size(WIDTH))
        frame = await link.fetch(1, lambda frame: wire.unpack(frame, ash.card, RUN, 1, WIDTH))
        await link.close()
        await until(lambda: ended)
        line.close()
        await line.wait_closed()
        told = b"".join(kept)
        secrets = (frame, ash.card.certificate, birch.card.certificate, RUN)
        assert len(told) > sum(map(len, secrets))  # they did go through
        for secret in secrets:
            assert not any(secret[i : i + 8] in told for i in range(len(secret) - 7))

    served(people, body)


def test_a_flood_of_junk_and_an_endless_message_take_no_memory(people):
    """A neighbour that announces 4 GiB, and a stranger that sends 64 MiB of junk instead of a handshake."""
    ash, birch = people

    async def body(server, address):
        from confide.network.channel import context

        reader, writer = await asyncio.open_connection(*address, ssl=context(birch, [ash.card], server=False),
                                                       server_hostname="ash")  # fmt: skip
        writer.write(b"\x02\xff\xff\xff\xff" + bytes(1000))
        with pytest.raises((ConnectionError, asyncio.IncompleteReadError)):
            await asyncio.wait_for(reader.readexactly(1), 120)
        writer.close()
        _, junk = await asyncio.open_connection(*address)
        with pytest.raises(ConnectionError):
            for _ in range(64):
                junk.write(b"PRI * HTTP/2.0\r\n\r\n" * 60_000)
                await asyncio.wait_for(junk.drain(), 120)
        junk.close()
        assert wire.source(await fetched(people))[1] == 1

    served(people, body)


def test_no_free_descriptor_is_waited_out(people):
    """A process that may open no more files keeps its neighbours and takes new ones once it may again."""
    ash, birch = people

    async def body(server, address):
        link = Link(birch, ash.card, RUN, wire.frame_size(WIDTH))
        assert await link.fetch(1, lambda frame: wire.unpack(frame, ash.card, RUN, 1, WIDTH))
        taken = []
        soft, hard = resource.getrlimit(resource.RLIMIT_NOFILE)
        waiting = socket.socket()
        resource.setrlimit(resource.RLIMIT_NOFILE, (100, hard))
        try:
            with pytest.raises(OSError, match="Too many"):
                while True:
                    taken.append(socket.socket())
            waiting.setblocking(False)
            waiting.connect_ex(address)
            for _ in range(10):  # each goes through the loop that would take who waits
                assert await link.fetch(1, lambda frame: wire.unpack(frame, ash.card, RUN, 1, WIDTH))
            assert not any(server._door._rows.values())
        finally:
            for one in taken:
                one.close()
            resource.setrlimit(resource.RLIMIT_NOFILE, (soft, hard))
        await until(lambda: any(server._door._rows.values()))
        waiting.close()
        await link.close()

    served(people, body)


def test_a_process_takes_as_many_descriptors_as_it_may():
    """In a process of its own, since a limit that is lowered cannot always be raised again."""
    script = (
        "import resource as r; from confide.network.door import raise_descriptors as up\n"
        "hard = r.getrlimit(r.RLIMIT_NOFILE)[1]; r.setrlimit(r.RLIMIT_NOFILE, (64, hard)); up()\n"
        "assert r.getrlimit(r.RLIMIT_NOFILE) == (hard, hard)\n"
    )
    subprocess.run([sys.executable, "-c", script], check=True)
