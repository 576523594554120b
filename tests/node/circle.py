"""Members of a private sum on disk, in one process: what a daemon carries over the network is carried by hand."""

from village import NAMES, Village

from confide.network import wire
from confide.node import federation as federations
from confide.node.agreement import Papers
from confide.node.amendment import Amendment
from confide.node.daemon import FEDERATION
from confide.node.journal import Journal
from confide.node.purse import Purse
from confide.node.summer import Summer


class Circle(Village):
    """Five members. `lie(name, number, frame, to)` may change what a member shows to another."""

    def __init__(self, folder, algorithm, *, spare=None, **options):
        super().__init__(folder, algorithm, **options)
        self.spare, self.members, self.heard, self.current = spare, {}, [], self.federation
        self.lie = lambda name, number, frame, to: frame

    def rewrite(self, **tables):
        """The file with other values in some of its tables, before anyone begins."""
        for name, table in tables.items():
            self.document[name] = {**self.document[name], **table}
        self.file = self.write("federation.toml", self.document)
        self.federation = self.current = federations.load(self.file)

    def member(self, name):
        """As `confide node run` makes it."""
        journal = Journal(self.run_folder(name), self.federation.digest)
        (self.run_folder(name) / FEDERATION).write_text(self.file.read_text())
        now = self.current
        purse = Purse(now, now.parties.index(name), "people", self.folder / name / "ledger.sqlite", self.spare)
        data = self.folder / f"{name}.npz"
        return Summer(now, self.identities[name], journal, purse, data)

    def sign(self, change, names):
        """All of `names` sign, and hold to it."""
        papers = Papers(self.federation)
        papers.take(Papers.of(self.folder / names[0], self.federation).pack())
        for name in names:
            papers.sign_amendment(self.identities[name], change)
        self.current = papers.current
        assert self.current.head == change.hash
        for name in names:
            Papers.of(self.folder / name, self.federation).take(papers.pack())

    def lose(self, *lost, edges=(), epsilon=None):
        """These are gone; those who stay sign that they go on, and do."""
        now = self.current
        stay = [name for name in now.parties if name not in lost]
        change = Amendment(now.digest, now.head, len(now.history), lost, edges, epsilon=epsilon)
        self.sign(change, stay)
        self.crash(*list(self.members))
        self.begin(*stay)

    def drew(self, name, number):
        """Whether an own frame holds numbers of the own rows."""
        with self.journal(name) as journal:
            return journal.attempt(self.identities[name].card.digest, number) > 0

    def begin(self, *names):
        for name in names or NAMES:
            one = self.members[name] = self.member(name)
            one.open()
            if not one.done:
                one.begin()
        return self

    def crash(self, *names):
        """What is in memory is gone."""
        for name in names:
            one = self.members.pop(name)
            one.purse.close()
            one.journal.close()
            if one._claims is not None:
                one._claims.close()

    def again(self, *names):
        self.crash(*names)
        return self.begin(*names)

    def listen(self, name):
        """Hear what is wanted and there; whether anything was."""
        one, moved = self.members[name], False
        for other in list(one.wanted):
            number = one.wanted.get(other, 0)
            if not number or other not in self.members or self.members[other].latest < number:
                continue
            frame = self.lie(other, number, self.members[other].frame(number), name)
            one.check(other, number, frame)
            one.hear(other, frame)
            self.heard.append((other, name, wire.source(frame)[1], frame))
            moved = True
        return moved

    def carry(self, until=lambda: False):
        """Until all are done, nobody can go on, or `until` says so; whether all are done."""
        moved = True
        while moved and not until():
            moved = False
            for name in list(self.members):
                if not self.members[name].done:
                    moved |= self.listen(name)
                    if until():
                        break
        return all(one.done for one in self.members.values())

    def kill_everywhere(self, kept=lambda frame: frame):
        """After every frame that anyone hears, another member is killed and starts again; nobody says anything else.

        `kept` is what must stay of a frame: all of it, or its seal where journals are compacted.
        """
        shown, victim = {}, 0

        def own(name):
            return {number: kept(frame) for number, frame in self.own_frames(name).items()}

        while not all(one.done for one in self.members.values()):
            count = len(self.heard)
            self.carry(until=lambda count=count: len(self.heard) > count)
            victim = (victim + 1) % len(NAMES)
            name = NAMES[victim]
            before = own(name)
            assert shown.get(name, {}).items() <= before.items()
            self.again(name)
            shown[name] = own(name)
            assert before.items() <= shown[name].items()
        for sender, _, number, frame in self.heard:
            assert own(sender)[number] == kept(frame)

    def own_frames(self, name):
        with self.journal(name) as journal:
            mine = self.identities[name].card.digest
            return {number: frame for sender, number, frame in journal.frames() if sender == mine}

    def close(self):
        self.crash(*list(self.members))
        super().close()
