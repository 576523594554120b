"""A hundred faults in one run with noise that nobody can repeat: nothing is released unpaid, and what is learned is
what the amendment implies.

What is sent is checked against formulas written here anew, from the paper: given all messages before it, the next one
is known but for its noise, which must be as loud as the federation says.
"""

import json
import os
import signal
from dataclasses import dataclass

import liar
import numpy as np
import pytest
import scipy.optimize
import scipy.special
import scipy.stats
from amending import leave_out
from havoc import KINDS, Fault, Havoc, schedule
from village import FEATURES, NAMES, Village

from confide.network import wire
from confide.node.agreement import Papers
from confide.node.codes import Code
from confide.privacy.ledger import Ledger

SEED = int(os.environ.get("CONFIDE_CHAOS_SEED", "15"))
ROUNDS, NOISE, COUPLING, STEP, CLIP, STRENGTH, DELTA = 380, 2.0, 0.2, 2.0, 0.5, 0.5, 1e-5
CDP = {
    "name": "CDPADMM", "rounds": ROUNDS, "coupling": COUPLING, "step": STEP, "clip": CLIP, "noise": NOISE,
    "noise_decay": 1.0,
}  # fmt: skip
LOST, BEHIND, AFTER = "cedar", "elm", 50  # who is lost, after how many faults; and who takes no connections
STAY = tuple(name for name in NAMES if name != LOST)
RING = {name: (NAMES[k - 1], NAMES[(k + 1) % 5]) for k, name in enumerate(NAMES)}
FEW = (("kill", "ash"), ("relay", "relay"), ("stop", "doum"), ("term", "birch"))
UNLIKELY = 1e-12  # of a true statement to be taken for false
# Rounds times the square of a shift of all their noise, in deviations, beyond which `plausible` sees it but for that
VISIBLE = (scipy.stats.chi2.isf(UNLIKELY, FEATURES) ** 0.5 + scipy.stats.norm.isf(UNLIKELY)) ** 2
pytestmark = pytest.mark.slow


# --- what journals and ledgers must say -------------------------------------------------------------------------------


@dataclass(frozen=True)
class Sent:
    """All messages, by whoever holds them: {(sender, round): numbers}; and under which terms each was sent."""

    numbers: dict[tuple[str, int], np.ndarray]
    heads: dict[tuple[str, int], bytes]

    @classmethod
    def read(cls, village, among=NAMES):
        """Every journal is a witness: if one has another message for a round than another, it was noised twice."""
        frames = {}
        names = {identity.card.digest: name for name, identity in village.identities.items()}
        for name in among:
            with village.journal(name) as journal:
                for sender, t, frame in journal.frames():
                    if names[sender] not in among:
                        continue
                    assert frames.setdefault((names[sender], t), frame) == frame, f"two messages: {names[sender]}, {t}"
        return cls({key: np.frombuffer(wire.payload_of(frame), "<f8") for key, frame in frames.items()},
                   {key: wire.run_of(frame) for key, frame in frames.items()})  # fmt: skip

    def last(self, name):
        return max(t for sender, t in self.numbers if sender == name)


def slope(X, y, beta):
    """Mean gradient of the logistic loss over a party's rows, each shortened to CLIP."""
    rows = -(y * scipy.special.expit(-y * (X @ beta)))[:, None] * X
    lengths = np.linalg.norm(rows, axis=1, keepdims=True)
    return np.mean(rows * np.minimum(1.0, CLIP / np.maximum(lengths, 1e-300)), axis=0)


def noise_of(sent, name, near, parties, X, y, rounds, dual=0.0):
    """What a party's messages of these rounds are beyond the paper's (7) and (9), over the noise's deviation."""
    d, dual, out = len(near), np.zeros(FEATURES) + dual, []
    h = 1 / STEP + 2 * COUPLING * d
    own, heard = np.zeros(FEATURES), np.zeros(FEATURES)
    for t in range(1, max(rounds) + 1):
        now = sent.numbers[name, t]
        if t in rounds:
            pull = own / STEP + COUPLING * (d * own + heard)
            exact = (pull - slope(X, y, own) - STRENGTH * own / parties - dual) / h
            out.append((now - exact) * h / NOISE)
        if t < max(rounds):
            own, heard = now, sum(sent.numbers[other, t] for other in near)
            dual = dual + COUPLING * (d * own - heard)
    return np.array(out)


def plausible(noise):
    """Whether these numbers (rounds, features) are standard normal: by the sum of their squares, and by their mean."""
    squares = scipy.stats.chi2.cdf(np.sum(noise**2), noise.size)
    drift = scipy.stats.chi2.sf(len(noise) * np.sum(noise.mean(axis=0) ** 2), noise.shape[1])
    return UNLIKELY < squares < 1 - UNLIKELY and drift > UNLIKELY


def rows_of(village, name):
    with np.load(village.folder / f"{name}.npz") as data:
        X, y = data["X"], data["y"]
    return X / np.maximum(1.0, np.linalg.norm(X, axis=1, keepdims=True)), y


def closed_form(mu):
    """ε at DELTA of a Gaussian mechanism of sensitivity over deviation μ: Balle and Wang, 2018."""

    def excess(epsilon):
        ends = -epsilon / mu + mu / 2, -epsilon / mu - mu / 2
        return scipy.stats.norm.cdf(ends[0]) - np.exp(epsilon + scipy.stats.norm.logcdf(ends[1])) - DELTA

    return scipy.optimize.brentq(excess, 0.0, 200.0, xtol=1e-12)


def check_payments(village, sent, among=NAMES):
    """Every draw is paid for: the ledger has a row for each, and none twice; together they cost what they must.

    Returns how many rounds were paid for again.
    """
    again = 0
    for name in among:
        last, own = sent.last(name), village.identities[name].card.digest
        with village.journal(name) as journal:
            assert journal.last(own) == last  # nobody holds a message that its sender does not
            drawn = [(t, a) for t in range(1, last + 1) for a in range(1, journal.attempt(own, t) + 1)]
        with Ledger(village.folder / name / "ledger.sqlite") as ledger:
            paid = [(e.round, e.attempt) for e in ledger.entries(name)]
            spent = ledger.spent(name)
            held = ledger.balance(name).held
        more = [one for one in paid if one not in set(drawn)]
        assert len(set(paid)) == len(paid) and set(drawn) <= set(paid)
        assert [t for t, _ in more] == ([last + 1] if more else []) and (not more or name == LOST)
        rows = len(rows_of(village, name)[1])
        mu = 2 * CLIP / rows / NOISE * np.sqrt(len(drawn))  # one row replaced moves the mean gradient so far
        assert spent >= closed_form(mu) * (1 - 1e-9), name
        assert spent <= village.federation.epsilon and (held == 0 or name == LOST)
        again += len(drawn) - last
    return again


# --- running ----------------------------------------------------------------------------------------------------------


@pytest.mark.timeout(7200)  # of a machine that has much else to do
def test_a_hundred_faults_and_a_lost_site_with_secure_noise(tmp_path):
    ports = Havoc.ports("ash", "doum")
    with Village(tmp_path, CDP, seed=None, budget=(20.0, DELTA), timeout=600.0, patience=0.5, restarts=120,
                 through=ports, outbound=(BEHIND,)) as village:  # fmt: skip
        assert village.federation.guarantee.label == "proven"
        havoc = Havoc(village, ports)
        try:
            faults = schedule(SEED, NAMES, list(ports), LOST, AFTER)
            village.start("relay", *NAMES)
            for fault in faults[:AFTER]:
                havoc.strike(fault)
            havoc.note(f"{LOST} is lost")
            village.kill(LOST)
            havoc.struck += 1
            leave_out(village, LOST, STAY, havoc.kill_once)
            for fault in faults[AFTER:]:
                havoc.strike(fault)
            havoc.note(f"{LOST} comes back; {havoc.struck} faults so far")
            village.start(LOST)  # with all its files: nobody listens
            assert village.join(*STAY, seconds=300) == dict.fromkeys(STAY, Code.FINISHED), havoc.story()
            village.jobs[LOST].kill()
            village.kill("relay", how=signal.SIGTERM)
            assert village.jobs["relay"].exitcode == 0 and havoc.struck >= 100
        finally:
            havoc.close()
        assert not [name for name in village.jobs if "Traceback" in village.log(name)]
        sent = Sent.read(village)
        assert {name: sent.last(name) for name in STAY} == dict.fromkeys(STAY, ROUNDS)
        assert check_payments(village, sent) >= KINDS["die paid"] + KINDS["die noised"]
        check_learned(village, sent)


def check_learned(village, sent):
    """Before the amendment all five count, since then four, from the first round on as if the fifth had never been."""
    for name in STAY:
        now = Papers.of(village.folder / name, village.federation).current
        heads = [sent.heads[name, t] for t in range(1, ROUNDS + 1)]
        turn = heads.count(village.federation.digest)
        assert heads == [village.federation.digest] * turn + [now.head] * (ROUNDS - turn) and 30 < turn < ROUNDS - 30
        X, y = rows_of(village, name)
        left = tuple(other for other in RING[name] if other != LOST)
        assert plausible(noise_of(sent, name, RING[name], 5, X, y, range(1, turn + 1))), name
        after = range(turn + 1, ROUNDS + 1)
        assert plausible(noise_of(sent, name, left, 4, X, y, after)), name
        assert np.array_equal(village.model(name).coefficients.ravel(), sent.numbers[name, ROUNDS])
        # Would wrong duals be seen? What the lost link had added up to is chance: in simulations of this run, at one of
        # its ends in five, less than the noise hides for sure, and at both in one run of sixty. Where it is more, duals
        # that keep it must be seen; and so must others that are wrong by no more than that.
        wrong = [np.full(FEATURES, NOISE * (1.001 * VISIBLE / len(after) / FEATURES) ** 0.5)]  # about half the noise
        if LOST in RING[name]:
            wrong.append(COUPLING * sum(sent.numbers[name, t] - sent.numbers[LOST, t] for t in range(1, turn)))
        for dual in wrong:
            if len(after) * np.sum((dual / NOISE) ** 2) > VISIBLE:
                assert not plausible(noise_of(sent, name, left, 4, X, y, after, dual=dual)), f"{name}: {dual}"


def test_who_tells_different_things_is_found_out_among_faults(tmp_path):
    """Cedar lies in round 14, to one neighbour; before that members are killed and the relay is lost. All others stop
    with two signatures that contradict each other, and what they sent is paid for."""
    at, honest = 14, [name for name in NAMES if name != LOST]
    with Village(tmp_path, {**CDP, "rounds": 40}, seed=None, budget=(20.0, DELTA), restarts=20,
                 outbound=(BEHIND,)) as village:  # fmt: skip
        havoc = Havoc(village, {})
        try:
            village.start("relay", *honest)
            liar.start(village, LOST, ("doum",), at=at, value=-0.01)
            for number, (kind, victim) in enumerate(FEW, start=1):
                havoc.strike(Fault(number, 2 * number, kind, (victim,), 0.1))
            assert village.join(*honest) == dict.fromkeys(honest, Code.MISBEHAVIOUR), havoc.story()
        finally:
            havoc.close()
        card, run = village.identities[LOST].card, village.federation.digest
        for name in honest:
            (file,) = (village.run_folder(name) / "evidence").glob("*.json")
            found = json.loads(file.read_text())
            first, second = (bytes.fromhex(one) for one in found["statements"])
            assert (found["name"], found["round"]) == (LOST, at) and first[:32] != second[:32]
            assert all(wire.stated(one, card, run, at, found["numbers"]) for one in (first, second))
        sent = Sent.read(village, among=honest)
        check_payments(village, sent, honest)
