"""A run whose members change: those who stay go on from where the farthest of them is, under streams nobody used."""

import numpy as np
import pytest
from summing import RUN, Village, numbers
from summing_streams import counted

from confide import Graph
from confide.network import frames, wire
from confide.network.frames import Phase, Place, pack, payload_of, source
from confide.network.masking import ClaimFile
from confide.network.private_sum import PrivateSum
from confide.network.standing import Farthest, Past, Stage, Standing
from confide.network.tree import SpanningTree, Speaker

WIDTHS = (3, 40, 7, 5)
HEAD = b"all who stay signed this".ljust(32)


class Smaller(Village):
    """Those of a village who stay, in a graph of their own; made from what is on their disks."""

    def __init__(self, before, stay, graph, number=1):
        self.before, self.stay, self.graph, self.home = before, stay, graph, before.home
        self.number, self.widths = number, before.widths
        self.tree = SpanningTree.of(graph)
        self.people, self.cards, self.keys, self.claims, self.journals = (
            [from_before[k] for k in stay]
            for from_before in (before.people, before.cards, before.keys, before.claims, before.journals)
        )
        self.files = [self.file(k) for k in range(len(stay))]
        self.seen, self.lie = before.seen, lambda k, place, frame, to: frame
        self.parties = [self.born(k) for k in range(len(stay))]
        for k, one in enumerate(self.parties):
            self.journals[k] += one.replay(list(self.journals[k]))

    def file(self, k):
        return self.before.file(self.stay[k]) if isinstance(self.before, Smaller) else f"claims {self.stay[k]}"

    def above(self, k):
        """Who hands out totals to party k, stage by stage."""
        up = self.tree.parent[k]
        mine = self.cards[k if up < 0 else up].digest
        if isinstance(self.before, Smaller):
            return [*self.before.above(self.stay[k]), mine]
        up = self.before.tree.parent[self.stay[k]]
        return [self.before.cards[self.stay[k] if up < 0 else up].digest, mine]

    def past(self, k):
        held = {(who, place.number): frame for frame in self.journals[k] for who, place in [source(frame)]}
        read = lambda who, number: held[who, number]  # noqa: E731
        return Past(held, read, self.cards[k].digest, self.above(k)[: self.number], self.widths)

    def born(self, k):
        speaker = Speaker(self.tree, k, RUN, self.people[k], self.cards)
        stage = Stage(self.number, HEAD, self.past(k).before(self.number, self.claims[k].last))
        return PrivateSum(speaker, self.keys[k], self.claims[k], self.widths, stage)

    def again(self, k):
        self.claims[k].close()
        self.claims[k] = ClaimFile(self.home / self.files[k])
        self.parties[k] = self.born(k)
        self.journals[k] += self.parties[k].replay(list(self.journals[k]))

    def totals(self, k):
        """All totals of party k, whenever they came."""
        past = [one for reached in self.past(k).reached for one in reached]
        return {one.round: np.frombuffer(one.total, "<i8") for one in past} | self.parties[k].totals


@pytest.fixture
def used(monkeypatch):
    """No stream masks two messages, whatever happens."""
    yield from counted(monkeypatch)


def shown(values, stay, t):
    return sum(values(t, k) for k in stay)


@pytest.mark.parametrize("lost", range(5))
@pytest.mark.parametrize("moment", [0, 3, 9, 17, 25, 26, 27, 31, 40, 49, 55])
def test_the_others_go_on_without_a_lost_member_whenever_it_is_lost(lost, moment, tmp_path, used):
    """After so many frames. Rounds that someone has the total of count for all; the others are of those who stay."""
    graph = Graph.path(5)
    village, values = Village(graph, tmp_path, WIDTHS), numbers(WIDTHS)
    village.run(values, until=lambda: len(village.seen) >= moment or all(one.done for one in village.parties))
    stay = [k for k in range(5) if k != lost]
    known = [set(village.parties[k].totals) for k in stay]
    T = max(map(len, known))
    assert all(T - 1 <= len(one) <= T for one in known)
    smaller = Smaller(village, stay, Graph.star(4))
    said = [list(journal) for journal in smaller.journals]
    smaller.run(lambda t, k: values(t, stay[k]))
    for k, before in enumerate(said):
        assert smaller.journals[k][: len(before)] == before
        for t in range(1, 5):
            everyone = stay if t > T else range(5)
            assert np.array_equal(smaller.totals(k)[t], shown(values, everyone, t)), (t, T)


def test_they_go_on_though_each_of_them_crashes_after_every_step(tmp_path, used):
    graph = Graph.path(5)
    village, values = Village(graph, tmp_path, WIDTHS), numbers(WIDTHS)
    village.run(values, until=lambda: 2 in village.parties[2].totals)  # the root has it, and not everybody else
    assert 0 < sum(2 in village.parties[k].totals for k in (0, 1, 2, 4)) < 4
    stay = [0, 1, 2, 4]
    smaller = Smaller(village, stay, Graph.path(4))
    mine = lambda t, k: values(t, stay[k])  # noqa: E731
    while not all(one.done for one in smaller.parties):
        moved = False
        for k in range(4):
            moved |= smaller.listen(k) | smaller.speak(k, mine)
            for l in range(4):
                before = dict(smaller.parties[l].frames)
                smaller.again(l)
                assert {key: smaller.parties[l].frames.get(key) for key in before} == before
        assert moved
    for k in range(4):
        for t in range(1, 5):
            assert np.array_equal(smaller.totals(k)[t], shown(values, stay if t > 2 else range(5), t))


def test_a_second_loss_before_the_first_is_settled_goes_on_from_the_farthest_all_the_same(tmp_path, used):
    """The root has a total that party 0 has not; another member is lost before the root could say so."""
    village, values = Village(Graph.path(5), tmp_path, WIDTHS), numbers(WIDTHS)
    village.run(values, until=lambda: 1 in village.parties[2].totals)
    assert 1 not in village.parties[0].totals
    first = Smaller(village, [0, 2, 3, 4], Graph.path(4))
    first.run(lambda t, k: values(t, first.stay[k]), until=lambda: any(one._list for one in first.parties))
    second = Smaller(first, [0, 1, 2], Graph.path(3), number=2)  # without party 4
    second.run(lambda t, k: values(t, (0, 2, 3)[k]))
    for k in range(3):
        assert np.array_equal(second.totals(k)[1], shown(values, range(5), 1))
        assert np.array_equal(second.totals(k)[2], shown(values, (0, 2, 3), 2))


def test_an_attempt_that_anyone_has_used_is_not_used_again(tmp_path, used):
    """One lost its message and began the round again; the others hear of neither before the members change."""
    village, values = Village(Graph.star(5), tmp_path, WIDTHS), numbers(WIDTHS)
    village.run(values, until=lambda: village.parties[3].turn == 2)
    village.parties[3].contribute(values(2, 3))
    village.again(3)
    village.parties[3].contribute(values(2, 3))
    assert village.claims[3].last == (2, 2)
    stay = [0, 1, 2, 3]
    smaller = Smaller(village, stay, Graph.path(4))
    smaller.run(lambda t, k: values(t, stay[k]))
    firsts = {claims.last for claims in smaller.claims}
    assert firsts == {(4, 1)}
    attempts = {place.attempt for _, place, _ in smaller.seen if place.stage and place.round == 2}
    assert attempts == {3}


def test_an_older_copy_of_the_journal_is_refused_in_a_new_stage_too(tmp_path):
    village, values = Village(Graph.path(3), tmp_path, WIDTHS), numbers(WIDTHS)
    village.run(values, until=lambda: village.parties[0].turn == 1)
    old = list(village.journals[0])
    village.run(values, until=lambda: village.claims[0].last == (3, 1))
    village.journals[0] = old
    with pytest.raises(ValueError, match="round 3 was masked and the journal ends at round 1"):
        Smaller(village, [0, 1], Graph.path(2))


def test_a_total_of_a_round_without_our_part_is_refused(tmp_path):
    village, values = Village(Graph.star(4), tmp_path, WIDTHS), numbers(WIDTHS)
    village.run(values, until=lambda: all(1 in one.totals for one in village.parties))
    smaller = Smaller(village, [0, 1, 2], Graph.star(3))
    made_up = Standing(0, 4, 1, bytes(8 * WIDTHS[3]), 0)

    def lie(k, place, frame, to):
        if (k, place.phase, place.round, place.stage, to) != (0, Phase.SUM_DOWN, 0, 1, 2):
            return frame
        return pack(smaller.people[0], RUN, place, made_up.pack(8 * max(WIDTHS)))

    smaller.lie = lie
    with pytest.raises(ValueError, match="a total of round 4 is said to be there, and we are at round 1"):
        smaller.run(lambda t, k: values(t, k))


def test_two_totals_of_the_last_round_are_noticed_with_the_next_frame(tmp_path):
    """Who is behind is told another total than those who have it: what was heard differs from then on."""
    village, values = Village(Graph.path(4), tmp_path, WIDTHS), numbers(WIDTHS)
    village.run(values, until=lambda: 2 in village.parties[village.tree.root].totals)
    root = village.tree.root
    stay = [k for k in range(4) if k != 3]
    smaller = Smaller(village, stay, Graph.path(3))

    def lie(k, place, frame, to):
        if (place.phase, place.round, place.stage) != (Phase.SUM_DOWN, 0, 1) or to == root:
            return frame
        whole = bytearray(payload_of(frame))
        whole[16] ^= 1
        return pack(smaller.people[k], RUN, place, bytes(whole))

    smaller.lie = lie
    with pytest.raises(ValueError, match="has heard something else"):
        smaller.run(lambda t, k: values(t, stay[k]))


def test_masks_and_what_is_heard_are_those_of_the_stage(tmp_path):
    """A frame of one stage is none of another, and numbers rise from stage to stage."""
    place = Place(Phase.SUM_UP, 3, 2, b"h" * 32, stage=1)
    assert place.number == (1 << 32) + Place(Phase.SUM_UP, 3, 2).number and frames.place_of(place.number) == place.key
    assert (wire.stage_in(place.number), wire.round_in(place.number)) == (1, 3)
    village = Village(Graph.path(2), tmp_path, WIDTHS)
    ash = village.people[0]
    frame = pack(ash, RUN, place, b"")
    assert source(frame)[1] == place
    with pytest.raises(ValueError, match="phase 14, attempt 2: must be 1, 6, 2"):
        frames.unpack(frame, ash.card, RUN, Place(Phase.SUM_UP, 3, 2, b"h" * 32), 0)
    for bad in ((Phase.SUM_UP, 0, 0), (Phase.AGAIN, 0, 0, bytes(32), 1), (Phase.KEYS_UP, 0, 0, bytes(32), 2**13)):
        with pytest.raises(ValueError, match=r"sums have rounds|stage 8192"):
            Place(*bad)


def test_the_farthest_stands_for_all():
    room = 16
    a, b, c = Standing(0, 2, 1, b"a" * 16, 4), Standing(0, 3, 1, b"b" * 8, 0), Standing(0, 3, 1, b"b" * 8, 2)
    whole = Farthest(room).merge({(0,): a.pack(room), (1,): b.pack(room), (2,): c.pack(room)})
    assert len(whole) == Farthest(room).size(3) == 32
    assert Standing.read(whole, [2, 2, 1]) == Standing(0, 3, 1, b"b" * 8, 2)
    with pytest.raises(ValueError, match="a total of round 3: there are 2"):
        Standing.read(whole, [2, 2])
