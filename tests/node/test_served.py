"""Whom a relay serves: the members of its federations as their papers say, read again when they change."""

import asyncio
import os

import pytest
from village import NAMES, Village

from confide.cli.relay import follow
from confide.errors import ConfideError
from confide.files import write_whole
from confide.network.dialling import Ways
from confide.network.identity import Identity, load_card
from confide.network.relay import Limits, Relay
from confide.node.agreement import Papers
from confide.node.amendment import Amendment
from confide.node.keys import new_key
from confide.node.served import Served

CDP = {"name": "CDPADMM", "rounds": 12, "coupling": 0.2, "step": 2.0, "clip": 0.5, "noise": 3.0}


@pytest.fixture
def village(tmp_path):
    return Village(tmp_path / "village", CDP, seed=None, budget=(20.0, 1e-5), outbound=("elm",))


def signed(village):
    """The papers of a federation that all have signed."""
    papers = Papers(village.federation)
    for name in NAMES:
        papers.sign(village.identities[name])
    return papers


def rekeyed(village, papers, name):
    """The new identity of a member, once all have signed the amendment with its card."""
    folder = new_key(village.folder / name).parent
    change = Amendment(village.federation.digest, village.federation.head, 1, cards=(load_card(folder / "card.toml"),))
    new = Identity.load(folder)
    for identity in {**village.identities, name: new}.values():
        papers.sign_amendment(identity, change)
    return new


def test_the_papers_of_a_member_amend_the_federation_they_are_of(village, tmp_path):
    other = Village(tmp_path / "other", CDP, seed=None, budget=(20.0, 1e-5))
    papers, file = signed(village), tmp_path / "papers.json"
    new = rekeyed(village, papers, "elm")
    file.write_bytes(papers.pack())
    served = Served([other.federation, village.federation], [file])
    assert served.federations[0] is other.federation and served.federations[1].head == papers.current.head
    digests = [{card.digest for card in members} for members in served.members]
    assert digests[0] == {one.card.digest for one in other.identities.values()}
    assert new.card.digest in digests[1] and village.identities["elm"].card.digest not in digests[1]


def test_papers_that_are_missing_damaged_forged_or_of_others_are_one_line(village, tmp_path):
    other, file = Village(tmp_path / "other", CDP, seed=None, budget=(20.0, 1e-5)), tmp_path / "papers.json"
    with pytest.raises(FileNotFoundError):
        Served([village.federation], [file])
    papers = signed(village).pack()
    for data in (papers[:-5], signed(other).pack(), papers.replace(b'"ash":"', b'"ash":"00')):
        file.write_bytes(data)
        with pytest.raises(ConfideError, match=r"papers\.json: papers of no federation that is served: "):
            Served([village.federation], [file])


def test_a_file_that_is_spoiled_later_is_told_of_once_and_changes_nothing(village, tmp_path):
    papers, file = signed(village), tmp_path / "papers.json"
    rekeyed(village, papers, "elm")
    file.write_bytes(papers.pack())
    served = Served([village.federation], [file])
    now = served.federations[0].head
    assert served.refresh() == []
    os.truncate(file, 100)
    assert [line.split(":")[0] for line in served.refresh()] == [str(file)]
    assert served.refresh() == [] and served.federations[0].head == now
    file.unlink()
    assert served.refresh() == [f"{file}: No such file or directory"] and served.refresh() == []
    write_whole(file, papers.pack())
    assert served.refresh() == [] and served.federations[0].head == now == papers.current.head


def test_a_running_relay_lets_the_new_key_in_and_the_old_one_no_more(village, tmp_path):
    """The papers change on disk; the relay is not started again."""
    papers, file = signed(village), tmp_path / "papers.json"
    file.write_bytes(papers.pack())
    old, relay = village.identities["elm"], Identity.load(village.folder / "relay")

    async def told(identity):
        """What a member hears that wants to take calls there."""
        said = asyncio.Queue()
        ways = Ways(identity, village.federation.digest, village.federation.relay)
        waits = asyncio.ensure_future(ways.attend(lambda called: None, said.put_nowait))
        try:
            return await asyncio.wait_for(said.get(), 60)
        finally:
            waits.cancel()

    async def main():
        served, lines = Served([village.federation], [file]), []
        board = Relay(relay, served.members, Limits())
        await board.start(relay.card.address)
        try:
            assert await told(old) == "up"
            new = rekeyed(village, papers, "elm")
            assert await told(new) != "up"
            write_whole(file, papers.pack())
            await follow(board, served, lines.append)
            assert lines == ["village: amendment 1 is in force"]
            assert await told(new) == "up" and await told(old) != "up"
            await follow(board, served, lines.append)
            assert len(lines) == 1
        finally:
            await board.stop()

    asyncio.run(main())
