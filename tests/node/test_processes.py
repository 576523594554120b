"""Real processes on loopback with mutual TLS: they equal the simulator, whatever happens to them meanwhile."""

import asyncio
import os
import signal
import subprocess
import sys
import time
from collections import Counter

import numpy as np
import pytest
from proxy import Proxy
from village import NAMES, Village, free_ports
from waiting import wait_for

from confide.network import wire
from confide.network.channel import Channel, Word, context, listener
from confide.network.identity import Identity
from confide.network.link import Link
from confide.node.codes import Code
from confide.privacy.ledger import Ledger

CDP = {"name": "CDPADMM", "rounds": 100, "coupling": 0.2, "step": 2.0, "clip": 0.5, "noise": 0.1}
FINISHED = dict.fromkeys(NAMES, 0)

pytestmark = pytest.mark.slow


def shown(village, name):
    """Which neighbours a node shows as up."""
    status = village.status(name)
    return status and {other: one["up"] for other, one in status["neighbours"].items()}


def stopped_when_heard(village, name, neighbour):
    """Stop a node; whether the neighbour has its last message and it has not the neighbour's. If not, it goes on.

    So it has paid for nothing that is not sent: who has all messages of a round pays for the next.
    """

    async def last_round_shown():
        link = Link(village.identities[name], village.identities[neighbour].card, village.federation.digest, 10_000)
        try:
            return await asyncio.wait_for(link.hello(), 120)
        finally:
            await link.close()

    os.kill(village.jobs[name].pid, signal.SIGSTOP)
    heard = asyncio.run(last_round_shown())
    with village.journal(name) as journal:
        mine, other = (village.identities[one].card.digest for one in (name, neighbour))
        if journal.last(mine) == heard and journal.get(other, heard) is None:
            return True
    os.kill(village.jobs[name].pid, signal.SIGCONT)
    return False


def test_five_parties_equal_the_simulation(tmp_path):
    """The program as a user starts it, 100 rounds."""
    with Village(tmp_path, CDP) as village:
        jobs = [
            subprocess.Popen([sys.executable, "-c", "from confide.cli import main; main()", *village.arguments(name)],
                             stdout=subprocess.PIPE, stderr=subprocess.DEVNULL, text=True)
            for name in NAMES
        ]  # fmt: skip
        said = [job.communicate(timeout=300)[0] for job in jobs]
        assert [job.returncode for job in jobs] == [0] * 5
        assert all("finished, round 100 of 100" in text and "protects nobody" in text for text in said)
        assert np.max(np.abs(village.models() - village.simulated())) <= 1e-10
        assert village.check_messages() == 5 * 2 * 100


@pytest.mark.parametrize(
    "algorithm", [{"name": "DPADMM", "rounds": 20, "clip": 1.0, "noise": 3.0},
                  {"name": "FDPADMM", "rounds": 20, "coupling": 0.3, "step": 3.0, "clip": 1.0}],
    ids=lambda table: table["name"],
)  # fmt: skip
def test_a_hub_that_only_relays_sums_equals_the_simulation(tmp_path, algorithm):
    with Village(tmp_path, algorithm, hub=True) as village:
        village.start()
        assert village.join() == {**FINISHED, "hub": 0}
        assert np.max(np.abs(village.models() - village.simulated())) <= 1e-10
        assert village.check_messages() == 2 * 5 * 20
        assert village.status("hub")["round"] == 20


def test_chaos(tmp_path):
    """Nodes killed -9 and restarted 36 times at random moments of a run."""
    rng = np.random.default_rng(3)
    with Village(tmp_path, {**CDP, "rounds": 500}) as village:
        village.start()
        assert village.passes("ash", 2)
        kills = 0
        while kills < 36:
            victims = [str(name) for name in rng.choice(NAMES, size=int(rng.integers(1, 4)), replace=False)]
            before = village.rounds_sent(victims[0])
            assert before < 480, "the run is too short for so many kills"
            village.kill(*victims)
            kills += len(victims)
            time.sleep(rng.uniform(0, 0.1))
            village.start(*victims)
            assert village.passes(victims[0], before), village.log(victims[0])
            time.sleep(rng.uniform(0, 0.15))
        assert village.join() == FINISHED
        assert village.check_messages() == 5 * 2 * 500  # every message, once and as its sender has it
        assert np.array_equal(village.models(), village.simulated())  # as the run that nobody disturbed


def test_chaos_with_secure_noise_releases_nothing_unpaid(tmp_path):
    """Noise that nobody can repeat: one message per round all the same, and every draw of it is charged, once."""
    rng = np.random.default_rng(4)
    with Village(tmp_path, {**CDP, "rounds": 40, "noise": 3.0}, seed=None, budget=(20.0, 1e-5)) as village:
        assert village.federation.guarantee.label == "proven"
        village.start()
        for _ in range(6):
            victim = str(rng.choice(NAMES))
            before = village.rounds_sent(victim)
            village.passes(victim, before, 30)
            if before > 30:
                break
            village.kill(victim)
            village.start(victim)
        assert village.join() == FINISHED
        assert village.check_messages() == 5 * 2 * 40
        for name in NAMES:
            with Ledger(tmp_path / name / "ledger.sqlite") as ledger:
                entries = ledger.entries(name)
                with village.journal(name) as journal:
                    own = village.identities[name].card.digest
                    drawn = [(t, a) for t in range(1, 41) for a in range(1, journal.attempt(own, t) + 1)]
                assert [(e.round, e.attempt) for e in entries] == drawn and len({e.run for e in entries}) == 1
                assert 0 < ledger.spent(name) <= 20.0 and ledger.balance(name).held == 0
                assert village.model(name).origin["population_epsilon"] == pytest.approx(ledger.spent(name))


def test_a_journal_restored_from_a_copy_one_round_old_draws_no_second_noise(tmp_path):
    """The ledger cannot tell it from a crash between paying and writing; the neighbours can."""
    with Village(tmp_path, {**CDP, "rounds": 40, "noise": 3.0}, seed=None, budget=(20.0, 1e-5)) as village:
        village.start()
        assert village.passes("ash", 5)
        village.kill("cedar")  # birch waits for it and ash for birch
        assert wait_for(lambda: stopped_when_heard(village, "ash", "birch"))
        village.kill("ash")
        file, own = village.run_folder("ash") / "journal", village.identities["ash"].card.digest
        newest, sent = file.read_bytes(), village.rounds_sent("ash")
        with village.journal("ash") as journal:
            last = next(offset for (sender, t), (offset, _) in journal._at.items() if (sender, t) == (own, sent))
        file.write_bytes(newest[: last - 16])  # all before the record of the last own message
        assert village.rounds_sent("ash") == sent - 1
        village.start("ash")
        assert village.join("ash") == {"ash": 2}
        assert f"has round {sent} of this node" in " ".join(village.log("ash").split())
        assert village.rounds_sent("ash") == sent - 1
        file.write_bytes(newest)
        village.start("ash", "cedar")
        assert village.join() == FINISHED


def test_two_nodes_killed_at_once(tmp_path):
    with Village(tmp_path, CDP) as village:
        village.start()
        assert village.passes("birch", 10)
        village.kill("birch", "cedar")
        assert wait_for(lambda: shown(village, "ash") == {"birch": False, "elm": True})
        village.start("birch", "cedar")
        assert village.join() == FINISHED
        assert np.array_equal(village.models(), village.simulated())


def test_a_black_holed_link_is_noticed_and_recovers(tmp_path):
    port = free_ports(1)[0]
    with Village(tmp_path, {**CDP, "rounds": 1000}, through={"ash": port}) as village:
        proxy = Proxy(port, village.ports["ash"])
        try:
            village.start(*NAMES)
            assert wait_for(lambda: shown(village, "birch") == {"ash": True, "cedar": True})
            proxy.silent = True
            began = time.monotonic()
            assert wait_for(lambda: shown(village, "birch") == {"ash": False, "cedar": True}, 40)
            assert time.monotonic() - began < 25  # pings: 10 s, and 5 s without an answer
            proxy.silent = False
            assert village.join() == FINISHED
        finally:
            proxy.close()
        assert np.array_equal(village.models(), village.simulated())


def test_a_node_under_ten_thousand_hostile_calls_keeps_serving(tmp_path):
    """A neighbour gone mad, and strangers, call a live node; its journal stays as it is and the run goes on."""
    with Village(tmp_path, CDP) as village:
        ash, birch = village.identities["ash"], village.identities["birch"]
        village.start(*(name for name in NAMES if name != "birch"))  # so the others wait for birch in round 1
        assert wait_for(lambda: village.status("ash") and village.status("ash")["state"] == "greeting")
        before = (village.run_folder("ash") / "journal").read_bytes()
        rng, run = np.random.default_rng(5), village.federation.digest
        good = wire.pack_request(run, 1)

        def request(number):
            kinds = [
                b"", good[: int(rng.integers(40))], good + b"\0", rng.bytes(40), wire.pack_request(bytes(32), 1),
                wire.pack_request(run, int(rng.integers(3, 2**32))), wire.pack_request(run, 0),
            ]  # fmt: skip
            return kinds[number % len(kinds)]

        async def attack():
            """As fast as answers come: refused one by one, and hung up on for coming too fast."""
            said, tls = Counter(), context(birch, [ash.card], server=False)
            host, port = listener(ash.card.address)
            while sum(said.values()) < 10_000:
                answers = asyncio.Queue()
                _, channel = await asyncio.get_running_loop().create_connection(
                    lambda put=answers.put_nowait: Channel(1000, lambda _, kind, body: put(body), lambda _: None,
                                                           lambda _: put(b"hung up")),
                    host, port, ssl=tls, server_hostname="ash",
                )  # fmt: skip
                while not channel.closed and sum(said.values()) < 10_000:
                    channel.send(Word.FETCH, request(sum(said.values())))
                    said[(await asyncio.wait_for(answers.get(), 120)).split(b" ")[0]] += 1
                channel.close()
            return said

        said = asyncio.run(attack())
        assert set(said) <= {b"request", b"run", b"round", b"too", b"hung"} and said[b"round"] > 1000, said
        assert (village.run_folder("ash") / "journal").read_bytes() == before
        village.start("birch")
        assert village.join() == FINISHED
        assert np.array_equal(village.models(), village.simulated())


def test_another_federation_is_found_before_a_row_is_read(tmp_path):
    with Village(tmp_path, CDP, timeout=20.0) as village:
        for name in NAMES:
            (tmp_path / f"{name}.npz").write_text("no rows")  # reading a row would be another error
        other = village.write("other.toml", {**village.document, "algorithm": {**CDP, "noise": 0.0001}})
        village.start("ash", "cedar", "doum", "elm")
        village.start("birch", file=other)
        assert village.join("ash", "birch") == {"ash": Code.TIMEOUT, "birch": Code.TIMEOUT}
        for name in ("ash", "birch"):  # said at once, and asked again: a wrong hash keeps waiting, it ends no run
            said = " ".join(village.log(name).split())
            assert "holds another federation" in said and "no row was read" in said
        assert village.rounds_sent("ash") == 0


def test_a_silent_neighbour_ends_the_run_with_the_model_so_far(tmp_path):
    with Village(tmp_path, {**CDP, "rounds": 2000}, timeout=20.0) as village:  # time for all five to begin
        village.start()
        assert village.passes("ash", 10)
        village.kill("ash")
        assert village.join("birch", "cedar", "doum", "elm") == {n: Code.TIMEOUT for n in NAMES if n != "ash"}
        status = village.status("birch")
        assert status["state"] == "stopped" and "no answer from ash for 20 s" in status["reason"]
        model = village.model("birch")
        assert 10 <= model.origin["round"] == status["round"] < 2000 and np.all(np.isfinite(model.coefficients))


def test_sigterm_ends_cleanly_and_the_run_resumes(tmp_path):
    with Village(tmp_path, CDP) as village:
        village.start()
        assert village.passes("ash", 10)
        village.kill("ash", how=signal.SIGTERM)
        assert village.jobs["ash"].exitcode == 143
        assert "Traceback" not in village.log("ash")
        assert village.status("ash")["state"] == "stopped" and "SIGTERM" in village.status("ash")["reason"]
        village.start("ash")
        assert village.join() == FINISHED
        assert np.array_equal(village.models(), village.simulated())


def test_strangers_that_run_the_program_get_nothing(tmp_path):
    """A node with the right name and another key is refused before it starts, by itself and by the others."""
    with Village(tmp_path, CDP, timeout=20.0) as village:
        os.replace(tmp_path / "ash", tmp_path / "real-ash")
        Identity.create(tmp_path / "ash", "ash", village.identities["ash"].card.address)
        village.start("ash")
        assert village.join("ash") == {"ash": 2}
        assert "its card of ash is not the one in" in village.log("ash")
