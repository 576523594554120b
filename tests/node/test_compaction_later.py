"""What comes after a journal was compacted: neighbours who ask, lost members, hubs, models and reports."""

import numpy as np
import pytest
from test_compaction import ADMM, DPSGD, forms
from test_compaction import eager as eager
from test_compaction import members as members
from village import NAMES, Village

import confide
from confide.errors import ConfideError
from confide.network import wire
from confide.node import compaction
from confide.node.comparison import compared
from confide.node.contributions import contributions
from confide.node.export import export
from confide.node.journal import Journal
from confide.node.member import Hub, Trainer
from confide.node.status import FEDERATION
from confide.report.node import distances


def test_journals_are_compared_whether_or_not_they_are_compacted(members, eager):
    ours = members(ADMM)
    ours.run(until=30)
    for name in ("ash", "birch"):
        (ours.members[name].journal.path.parent / FEDERATION).write_text(ours.village.file.read_text())
    one, other = (ours.members[name].journal for name in ("ash", "birch"))
    assert one.horizon > 5 and wire.form_of(one.frame(ours.village.identities["ash"].card.digest, 5))
    homes = [ours.village.folder / name for name in ("ash", "birch")]
    found = compared(*homes)
    assert found.both > 55 and found.lies == found.altered == ()
    cedar = ours.village.identities["cedar"]
    ash = ours.village.identities["ash"]
    lie = wire.shortened(wire.pack(ash, one.run, 5, bytes(32), bytes(4 * 96)), wire.Form.NUMBERS)
    other.rewrite(lambda sender, t, frame: lie if (sender, t) == (ash.card.digest, 5) else frame)
    found = compared(*homes)
    assert found.lies == (("ash", 5),) and found.altered == ()
    forged = wire.pack(cedar, one.run, 5, bytes(32), bytes(4 * 96))
    forged = wire.shortened(forged[:40] + ash.card.digest + forged[72:], wire.Form.SEAL)
    other.rewrite(lambda sender, t, frame: forged if (sender, t) == (ash.card.digest, 5) else frame)
    found = compared(*homes)
    assert found.altered == (("ash", 5),) and found.lies == ()


def test_a_member_is_lost_after_journals_were_compacted(members, monkeypatch):
    """The state from numbers alone is the one from whole frames, to the bit, new link and all; who was there is known.

    The middle of a path is lost: the new neighbours fetch each other's rounds from the first on, without statements.
    """
    found = {}
    for least in (1 << 40, 1):
        monkeypatch.setattr(compaction, "LEAST", least)
        ours = members({**ADMM, "rounds": 60}, str(least), graph=confide.Graph.path(5))
        ours.run(until=30)
        ours.leave("cedar")
        ours.run()
        stay = [name for name in NAMES if name != "cedar"]
        now = ours.amend(stay, without=("cedar",), edges=(("birch", "doum"),))
        for name in stay:
            ours.join(name, now)
            ours.step(name)
        ours.run(until=20)
        for name in stay:  # and again, in the middle of fetching
            ours.join(name, now)
        ours.run()
        assert {one.t for one in ours.members.values()} == {60}
        ash, birch = (ours.members[name] for name in ("ash", "birch"))
        assert (wire.Form.NUMBERS in forms(birch)) == (least == 1)
        doum = now.cards["doum"].digest
        assert (wire.form_of(birch.journal.frame(doum, 1)) == wire.Form.NUMBERS) == (least == 1)
        said = contributions(now, ash.journal, 60)
        found[least] = [one.estimate for one in ours.members.values()], said
        duals = np.array([one.party.state.dual[0, 0] for one in ours.members.values()])
        assert np.abs(duals.sum(axis=0)).max() <= 1e-12 * np.abs(duals).sum()
    assert found[1] == found[1 << 40]
    assert "cedar: rounds 1 to 3" in found[1][1]


def test_who_asks_for_a_compacted_round_is_refused_in_one_line(members, eager):
    ours = members(ADMM)
    ours.run(until=30)
    ash, birch = (ours.members[name] for name in ("ash", "birch"))
    short = ash.frame(3)
    assert wire.form_of(short) == wire.Form.NUMBERS
    with pytest.raises(ConfideError, match=r"^the statements of round 3: left out when .* restore the newest"):
        birch.check("ash", 3, short)
    birch.check("ash", 30, ash.frame(30))
    sealed = members(DPSGD, "sealed")
    sealed.run(until=30)
    with pytest.raises(ConfideError, match=r"^round 3: left out when the journal was compacted, .* restore the newest"):
        sealed.members["ash"].frame(3)


def test_nothing_that_a_neighbour_may_ask_for_is_shortened(members, eager):
    """A new neighbour far ahead: its frames were sent before the link, and do not show that it has ours.

    What was sent before the link is fetched without statements; what was sent since must stay whole until it has it.
    """
    ours = members({**ADMM, "rounds": 60}, graph=confide.Graph.path(5))
    now = ours.amend(NAMES, edges=(("ash", "elm"),))
    ours.leave("ash")
    before, people, told = now.before.head, ours.village.identities, bytes(4 * 96)
    with Journal(ours.village.folder / "made", now.digest) as journal:
        for t in range(1, 31):
            journal.commit(wire.pack(people["ash"], before if t <= 20 else now.head, t, bytes(32), told))
            journal.keep([wire.pack(people["elm"], before, t, bytes(32), told)])
            journal.keep([wire.pack(people["birch"], before if t <= 20 else now.head, t, bytes(32), told)])
        assert compaction.asked_for(journal, now, "ash") == 20
        compaction.compact(journal, now, "ash", 30, 2)
        short = [t for t in range(1, 31) if wire.form_of(journal.frame(people["ash"].card.digest, t))]
        assert short == [*range(1, 21)]
        journal.keep([wire.pack(people["elm"], now.head, 31, bytes(32), told)])
        assert compaction.asked_for(journal, now, "ash") == 29  # now elm shows 30 and birch 29


def test_a_hub_and_its_parties(tmp_path, eager, monkeypatch):
    """The hub keeps seals; its parties all: FDPADMM averages over its last rounds, and there are no statements."""
    monkeypatch.setattr(compaction, "SHARE", 0.0)  # of four numbers little can go
    village = Village(tmp_path, {"name": "FDPADMM", "rounds": 12}, hub=True)
    federation = village.federation
    journals = {name: Journal(village.run_folder(name), federation.digest) for name in village.identities}

    def join(name):
        if name == "hub":
            return Hub(federation, village.identities[name], journals[name])
        made = Trainer(federation, village.identities[name], journals[name], None, village.folder / f"{name}.npz")
        made.begin()
        return made

    everyone = {name: join(name) for name in village.identities}
    for t in range(1, 13):
        if t == 8:
            everyone = {name: join(name) for name in village.identities}
        everyone["hub"].step({name: everyone[name].frame(t) for name in NAMES})
        for name in NAMES:
            everyone[name].step({"hub": everyone["hub"].frame(t)})
    assert forms(everyone["hub"])[:3] == [wire.Form.SEAL] * 3
    assert compaction.form(federation, "ash") == wire.Form.NUMBERS and not any(forms(everyone["ash"]))
    assert np.allclose([everyone[name].estimate for name in NAMES], village.simulated(), rtol=0, atol=1e-12)
    for journal in journals.values():
        journal.close()


def test_a_model_and_a_report_are_made_of_a_compacted_journal(members, eager):
    ours = members(DPSGD)
    ours.run(until=30)
    one = ours.members["ash"]
    folder = one.journal.path.parent
    (folder / FEDERATION).write_text(ours.village.file.read_text())
    model = export(ours.village.folder / "ash", folder)
    assert np.array_equal(model.coefficients.ravel(), one.estimate)
    shown = distances(one.federation, one.identity, one, one.journal)
    assert shown["round"].tolist() == [*range(one.journal.horizon + 1, 31)]
    assert shown["distance"][-1] == pytest.approx(one.distance, rel=1e-12)
