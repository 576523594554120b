"""Private sums over a network in memory: any graph, the same total everywhere, crashes, and members who lie."""

import numpy as np
import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st
from scipy import stats
from summing import RUN, Village, numbers
from test_tree import graphs

from confide import Graph
from confide.network import wire
from confide.network.frames import Phase, Place, pack, payload_of
from confide.network.masking import members_hash, stream, total, unmasked
from confide.network.pairing import RunKey
from confide.network.private_sum import PrivateSum

WIDTHS = (3, 40, 7)
GRAPHS = {"ring": Graph.ring(5), "star": Graph.star(6), "path": Graph.path(4), "complete": Graph.complete(5),
          "pair": Graph.path(2), "random": Graph.random(20, 40, seed=1)}  # fmt: skip


def exact(values, graph, t):
    return sum(values(t, k) for k in range(graph.size))


@pytest.mark.parametrize("graph", GRAPHS.values(), ids=GRAPHS)
def test_all_parties_end_with_the_same_total_bit_for_bit(graph, tmp_path):
    village, values = Village(graph, tmp_path, WIDTHS), numbers(WIDTHS)
    village.run(values)
    for one in village.parties:
        assert one.done and not one.wanted and not one.turn
        for t in (1, 2, 3):
            assert np.array_equal(one.totals[t], exact(values, graph, t))
    for k, one in enumerate(village.parties):  # two messages a pass, one at the root and one at a leaf
        spoken = (village.tree.parent[k] >= 0) + bool(village.tree.children[k])
        assert len(one.frames) == spoken * (3 + len(WIDTHS))


@settings(max_examples=15, deadline=None, suppress_health_check=[HealthCheck.function_scoped_fixture])
@given(graph=graphs(8), seed=st.integers(0, 2**32 - 1))
def test_any_connected_graph_will_do(graph, seed, tmp_path_factory):
    village, values = Village(graph, tmp_path_factory.mktemp("any"), (5,)), numbers((5,), seed)
    village.run(values)
    assert all(np.array_equal(one.totals[1], exact(values, graph, 1)) for one in village.parties)


def test_frames_have_at_most_two_vectors_a_round(tmp_path):
    village = Village(Graph.complete(5), tmp_path, (100,))
    village.run(numbers((100,)))
    for one in village.parties:
        spoken = [frame for (phase, _, _), frame in one.frames.items() if phase >= Phase.SUM_UP]
        assert sum(map(len, spoken)) <= 3 * 800


# --- order ------------------------------------------------------------------------------------------------------------


def test_nothing_is_masked_before_all_have_signed_the_same_keys(tmp_path):
    village = Village(Graph.path(3), tmp_path, WIDTHS)
    village.run(numbers(WIDTHS), until=lambda: any(one.turn for one in village.parties))
    first = [k for k, one in enumerate(village.parties) if one.turn]
    agreed = [key for one in village.parties for key in one.frames if key[0] == Phase.AGREED_UP]
    assert first and len(agreed) == 2 and all(c.last == (0, 0) for c in village.claims)


@pytest.mark.parametrize("graph", [Graph.star(4), Graph.path(5)], ids=["star", "path"])
def test_who_shows_two_keys_is_found_out_before_round_1(graph, tmp_path):
    """The root tells one child of another key of its own than it tells everyone else."""
    village = Village(graph, tmp_path, WIDTHS)
    root, victim = village.tree.root, village.tree.children[village.tree.root][0]
    other = RunKey.create(RUN).signed(village.people[root])

    def lie(k, place, frame, to):
        if (k, place.phase, to) != (root, Phase.KEYS_DOWN, victim):
            return frame
        whole = payload_of(frame)
        return pack(village.people[k], RUN, place, whole[: 128 * root] + other + whole[128 * (root + 1) :])

    village.lie = lie
    with pytest.raises(ValueError, match=r"has heard something else|did not sign our keys"):
        village.run(numbers(WIDTHS))
    assert all(c.last == (0, 0) for c in village.claims)  # no stream was made


def test_a_changed_offer_of_someone_else_is_not_signed(tmp_path):
    village = Village(Graph.path(3), tmp_path, WIDTHS)
    root = village.tree.root

    def lie(k, place, frame, to):
        if (k, place.phase) != (root, Phase.KEYS_DOWN):
            return frame
        whole = bytearray(payload_of(frame))
        whole[128 * 2 + 40] ^= 1
        return pack(village.people[k], RUN, place, bytes(whole))

    village.lie = lie
    with pytest.raises(ValueError, match="is not signed by party-2"):
        village.run(numbers(WIDTHS))


def test_speaking_out_of_turn_is_refused(tmp_path):
    village = Village(Graph.path(3), tmp_path, WIDTHS)
    one = village.parties[1]
    with pytest.raises(ValueError, match="no round waits"):
        one.contribute(np.zeros(3, np.int64))
    leaf = village.parties[0].frames
    (frame,) = leaf.values()
    with pytest.raises(ValueError, match=r"wanted are those of \[0, 2\]"):
        one.hear(1, frame)
    with pytest.raises(ValueError, match="frame of another sender"):
        one.hear(2, frame)
    assert sorted(one.wanted) == [0, 2]
    one.hear(0, frame)
    with pytest.raises(ValueError, match=r"wanted are those of \[2\]"):
        one.hear(0, frame)
    village.run(numbers(WIDTHS), until=lambda: any(p.turn for p in village.parties))
    k = next(k for k, p in enumerate(village.parties) if p.turn)
    with pytest.raises(ValueError, match="round 1 has 3"):
        village.parties[k].contribute(np.zeros(4, np.int64))
    assert village.claims[k].last == (0, 0)


# --- crashes ----------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("graph", [Graph.path(4), Graph.star(4)], ids=["path", "star"])
def test_who_crashes_anywhere_sends_the_same_bytes_again(graph, tmp_path):
    """Every party crashes after every step of every party; what it has shown stays as it was."""
    village, values = Village(graph, tmp_path, WIDTHS), numbers(WIDTHS)
    while not all(one.done for one in village.parties):
        moved = False
        for k in range(graph.size):
            moved |= village.listen(k) | village.speak(k, values)
            for l in range(graph.size):
                shown = dict(village.parties[l].frames)
                village.again(l)
                assert {key: village.parties[l].frames.get(key) for key in shown} == shown
        assert moved
    for one in village.parties:
        assert all(np.array_equal(one.totals[t], exact(values, graph, t)) for t in (1, 2, 3))


@pytest.mark.parametrize(
    "graph", [Graph.path(5), Graph.star(4), Graph.random(8, 12, seed=2)], ids=["path", "star", "random"]
)
def test_a_message_lost_between_claim_and_journal_begins_the_round_again_for_all(graph, tmp_path):
    """Whoever it is: all hear of it, say other numbers behind other masks, and what was said before stays as it was."""
    for victim in range(graph.size):
        home = tmp_path / f"{victim}"
        home.mkdir()
        village, values = Village(graph, home, WIDTHS), numbers(WIDTHS)
        village.run(values, until=lambda v=village, k=victim: v.parties[k].turn == 2)
        village.parties[victim].contribute(values(2, victim))  # and it crashes before the frame is in the journal
        village.again(victim)
        assert village.parties[victim].attempt == 2 and (Phase.AGAIN, 2, 2) in village.parties[victim].frames
        shown = [dict(one.frames) for one in village.parties]
        village.run(values)
        for one, before in zip(village.parties, shown, strict=True):
            assert all(np.array_equal(one.totals[t], exact(values, graph, t)) for t in (1, 2, 3))
            assert {key: one.frames[key] for key in before} == before
            assert (Phase.AGAIN, 2, 2) in one.frames and (Phase.AGAIN, 3, 2) not in one.frames
        for k in range(graph.size):  # the second attempt comes back from the journal, too
            village.again(k)
            assert village.parties[k].done


def test_two_lost_messages_of_one_round_are_two_more_attempts(tmp_path):
    village, values = Village(Graph.path(3), tmp_path, WIDTHS), numbers(WIDTHS)
    for attempt in (1, 2):
        village.run(values, until=lambda: village.parties[0].turn == 1)
        assert village.parties[0].attempt == attempt
        village.parties[0].contribute(values(1, 0))
        village.again(0)
    village.run(values)
    assert all(np.array_equal(one.totals[1], exact(values, village.graph, 1)) for one in village.parties)
    assert all(claims.last == (3, 1) for claims in village.claims)


def shortened(village, k, last):
    """Seals in the place of the sums up to this round."""
    for at, frame in enumerate(village.journals[k]):
        if wire.place(frame)[1] >= Phase.AGAIN and wire.place(frame)[0] <= last:
            village.journals[k][at] = wire.seal(frame)


@pytest.mark.parametrize("graph", [Graph.path(4), Graph.star(4)], ids=["path", "star"])
@pytest.mark.parametrize("lost", [None, 3, 4], ids=["", "round 3", "round 4"])
def test_rounds_without_numbers_are_passed_over(graph, lost, tmp_path):
    """Sealed before the last total, at every step; a message lost on the way is begun again, as ever."""
    widths = (3, 40, 7, 2, 5)
    village, values = Village(graph, tmp_path, widths), numbers(widths)
    missed = lost is None
    while not all(one.done for one in village.parties):
        moved = False
        for k in range(graph.size):
            moved |= village.listen(k)
            if not missed and k == 1 and village.parties[k].turn == lost:
                village.parties[k].contribute(values(lost, k))  # and it crashes before the frame is in the journal
                village.again(k)
                moved = missed = True
            else:
                moved |= village.speak(k, values)
            place = village.parties[k]._pass.place
            shortened(village, k, place.round - 2)
            village.again(k)
            assert village.parties[k]._pass.place == place
            if place.round > 3 and not village.parties[k].done:
                assert min(village.parties[k].totals) == place.round - 1
        assert moved
    assert all(claims.last == (5, 1) for claims in village.claims)
    for one in village.parties:
        assert np.array_equal(one.totals[5], exact(values, graph, 5))


def test_a_journal_without_the_round_after_those_that_were_left_out_is_refused(tmp_path):
    village, values = Village(Graph.path(3), tmp_path, WIDTHS), numbers(WIDTHS)
    village.run(values, until=lambda: village.parties[0].turn == 3)
    shortened(village, 0, 2)
    with pytest.raises(ValueError, match="no numbers of round 2, and no frame of the one after"):
        village.again(0)


def test_a_journal_older_than_its_claims_is_refused(tmp_path):
    village, values = Village(Graph.path(3), tmp_path, WIDTHS), numbers(WIDTHS)
    village.run(values, until=lambda: village.parties[0].turn == 1)
    old = list(village.journals[0])
    village.run(values)
    village.journals[0] = old
    with pytest.raises(ValueError, match="round 3 was masked and the journal ends at round 1"):
        village.again(0)


def test_a_word_that_a_round_begins_again_is_checked_like_any_other(tmp_path):
    village, values = Village(Graph.path(2), tmp_path, WIDTHS), numbers(WIDTHS)
    root, leaf = village.tree.root, village.tree.children[village.tree.root][0]
    village.run(values, until=lambda: village.parties[leaf].turn == 2)
    one, heard = village.parties[root], village.parties[root].wanted[leaf].heard

    def word(who=leaf, run=RUN, **changes):
        place = {"phase": Phase.AGAIN, "round": 2, "attempt": 2, "heard": heard} | changes
        return pack(village.people[who], run, Place(**place), b"")

    for bad, words in (
        (word(attempt=1), "begins again, round 2, attempt 1 again: wanted"), (word(round=3), "round 3: asked for"),
        (word(heard=bytes(32)), "has heard something else"), (word(who=root), "another sender"),
        (word(run=bytes(32)), "another run"), (word()[:-1] + b"\0", "not signed"),
    ):  # fmt: skip
        with pytest.raises(ValueError, match=words):
            one.hear(leaf, bad)
        assert one.attempt == 1
    one.hear(leaf, word(attempt=7))
    assert one.attempt == 7 and (Phase.AGAIN, 2, 7) in one.frames


def test_a_frame_of_another_attempt_is_refused(tmp_path):
    village, values = Village(Graph.path(2), tmp_path, WIDTHS), numbers(WIDTHS)
    root, leaf = village.tree.root, village.tree.children[village.tree.root][0]
    village.run(values, until=lambda: village.parties[leaf].turn == 1)
    (up,) = village.parties[leaf].contribute(values(1, leaf))
    village.parties[root].retry(2)
    with pytest.raises(ValueError, match="kind 1, phase 6, attempt 1: must be 1, 6, 2"):
        village.parties[root].hear(leaf, up)


# --- who lies can spoil the sum, and never sees more ------------------------------------------------------------------


class Spoiler(PrivateSum):
    """Party 1 adds what it likes."""

    def contribute(self, values):
        return super().contribute(values + (1000 if self.speaker.k == 1 else 0))


def test_a_liar_can_spoil_the_sum_for_all_alike(tmp_path):
    village, values = Village(GRAPHS["ring"], tmp_path, WIDTHS, Spoiler), numbers(WIDTHS)
    village.run(values)
    assert all(np.array_equal(one.totals[2], exact(values, village.graph, 2) + 1000) for one in village.parties)


@pytest.mark.parametrize("lies_in", [1, 2, 3])
def test_who_tells_different_totals_is_found_out(lies_in, tmp_path):
    """The root of a star is in between all others: only what everyone signs at the end can tell."""
    village, values = Village(Graph.star(4), tmp_path, WIDTHS), numbers(WIDTHS)

    def lie(k, place, frame, to):
        if (k, place.phase, place.round, to) != (0, Phase.SUM_DOWN, lies_in, 2):
            return frame
        bad = (np.frombuffer(payload_of(frame), "<u8") + np.uint64(1)).astype("<u8").tobytes()
        return pack(village.people[0], RUN, place, bad)

    village.lie = lie
    with pytest.raises(ValueError, match=r"has heard something else|did not sign our keys and totals"):
        village.run(values)
    assert not any(one.done for one in village.parties)


def test_what_passes_over_links_tells_colluders_only_the_honest_sum(tmp_path):
    """On a path 0-1-2-3-4, parties 1 and 3 pool all frames and all secrets: of 0, 2 and 4 they get the sum, exactly,
    and nothing of one or two of them."""
    width, honest, bad = 4000, (0, 2, 4), (1, 3)
    village = Village(Graph.path(5), tmp_path, (width,))
    village.run(lambda t, k: np.full(width, 10**k, np.int64))
    up = {k: np.frombuffer(payload_of(f), "<u8") for k, place, f in village.seen if place.phase == Phase.SUM_UP}
    sent = {0: up[0], 4: up[4], 2: village.parties[1].totals[1].view(np.uint64) - up[1] - up[3]}
    who = [card.digest for card in village.cards]
    for k in honest:
        for liar in bad:
            known = stream(village.parties[liar]._masks._secrets[who[k]], 1, 1, members_hash(who), width)
            sent[k] = sent[k] - known if who[k] < who[liar] else sent[k] + known
    assert np.array_equal(unmasked(total(sent.values())), np.full(width, 10101))
    for some in ((0,), (2,), (4,), (0, 2), (0, 4), (2, 4)):
        seen = total([sent[k] for k in some])
        assert stats.chisquare(np.bincount(seen.view(np.uint8), minlength=256)).pvalue > 1e-4


def test_frames_are_those_of_the_wire(tmp_path):
    village = Village(Graph.path(3), tmp_path, (3,))
    village.run(numbers((3,)))
    for k, one in enumerate(village.parties):
        for key, frame in one.frames.items():
            wire.authentic(frame, village.cards[k], RUN)
            assert wire.source(frame) == (village.cards[k].digest, wire.number(key[1], key[0], key[2]))
