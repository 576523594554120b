"""What a node shows to those who watch it: metrics, health, logs; public values and the own spend, and no row."""

import datetime
import http.client
import json
import logging
import socket
import time
import urllib.error
import urllib.request
from types import SimpleNamespace

import numpy as np
import pytest
from typer.testing import CliRunner
from village import NAMES, SIZES, Village, free_ports
from waiting import wait_for

from confide.cli import app
from confide.cli.node_log import json_log, watched
from confide.network import identity as identities
from confide.network.identity import Identity, load_card
from confide.node import daemon, window
from confide.node import outlook as outlooks
from confide.node.agreement import Papers
from confide.node.amendment import Amendment
from confide.node.daemon import Status
from confide.node.keys import new_key
from confide.node.outlook import Outlook
from confide.node.window import Window
from confide.privacy.ledger import Ledger

CDP = {"name": "CDPADMM", "rounds": 40, "coupling": 0.2, "step": 2.0, "clip": 0.5, "noise": 3.0}


@pytest.fixture
def status():
    neighbours = {
        "birch": {"up": True, "trouble": "", "misbehaved": "", "way": "straight"},
        "elm": {"up": False, "trouble": 'says "no"\n<b>', "misbehaved": "", "way": ""},
    }
    return Status("ash", "village", "0" * 16, "CDPADMM", "proven", 40, state="training", round=7, neighbours=neighbours,
                  spent_epsilon=0.5, left_epsilon=1.5, consensus_distance=0.25, refused=3,
                  journal_bytes=4096, updated=1000.0)  # fmt: skip


@pytest.fixture
def outlook(tmp_path):
    return Outlook(Village(tmp_path, CDP, seed=None, budget=(20.0, 1e-5)).federation, "ash")


def get(port, path, host=None, method="GET"):
    request = urllib.request.Request(
        f"http://127.0.0.1:{port}{path}", method=method, headers={"Host": host} if host else {}
    )
    try:
        with urllib.request.build_opener(urllib.request.ProxyHandler({})).open(request, timeout=10) as answer:
            return answer.status, dict(answer.headers), answer.read().decode()
    except urllib.error.HTTPError as error:
        return error.code, dict(error.headers), error.read().decode()


def answers(port, path):
    """Whether it does, where it may also hang up."""
    try:
        return get(port, path)[0] == 200
    except (OSError, http.client.HTTPException):
        return False


def test_metrics_are_openmetrics_and_say_what_the_status_says(outlook, status):
    """Read by the parser of the Prometheus project."""
    parser = pytest.importorskip("prometheus_client.openmetrics.parser")
    from confide.node.metrics import exposition

    outlook.show(status)
    families = {
        family.name: family for family in parser.text_string_to_metric_families(exposition(outlook.state()).decode())
    }
    samples = {(s.name, *sorted(s.labels.values())): s.value for family in families.values() for s in family.samples}
    assert samples["confide_round",] == 7 and samples["confide_rounds",] == 40
    assert samples["confide_neighbours_up",] == 1 and samples["confide_refused_total",] == 3
    assert samples["confide_journal_bytes",] == 4096
    assert samples["confide_neighbour_up", "birch"] == 1 and samples["confide_neighbour_up", "elm"] == 0
    assert samples["confide_epsilon_spent",] == 0.5 and samples["confide_epsilon_left",] == 1.5
    assert samples["confide_state", "training"] == 1 and samples["confide_state", "failed"] == 0
    assert 3640 < samples["confide_certificate_days", "ash"] < 3650  # ten years
    assert "confide_round_seconds" not in families  # of one status there is no pace
    assert families["confide_refused"].type == "counter"


def test_the_pace_is_of_the_last_minute(outlook, status, monkeypatch):
    now = [100.0]
    monkeypatch.setattr(outlooks.time, "monotonic", lambda: now[0])
    for second in range(200):
        now[0], status.round = 100.0 + second, second if second < 100 else 100 + (second - 100) // 4
        outlook.show(status)
    assert outlook.state()["seconds_per_round"] == pytest.approx(4.0, rel=0.07)


def test_health(outlook, status, monkeypatch):
    assert outlook.health() == (False, "starting")
    outlook.show(status)
    assert outlook.health() == (True, "training")
    then = time.monotonic()
    monkeypatch.setattr(outlooks.time, "monotonic", lambda: then + 60)
    assert outlook.health() == (False, "no word for 60 s")
    status.state = "failed"
    outlook.show(status)
    assert outlook.health() == (False, "failed")
    status.state = "finished"
    outlook.show(status)
    assert outlook.health() == (True, "finished")


def test_the_page_is_for_this_machine_and_nothing_else_is_served(outlook, status):
    outlook.show(status)
    one = Window("127.0.0.1:0", window.page(outlook), local=True)
    try:
        code, headers, body = get(one.port, "/")
        assert (
            code == 200 and "<title>confide node</title>" in body and "http" not in body.lower().replace("doctype", "")
        )
        assert (
            headers["Content-Security-Policy"].startswith("default-src 'none'")
            and headers["Cache-Control"] == "no-store"
        )
        assert json.loads(get(one.port, "/state")[2])["neighbours"]["elm"]["trouble"] == 'says "no"\n<b>'
        assert get(one.port, "/healthz")[::2] == (200, "training\n")
        for path in ("/../daemon.py", "/live.html", "/state/", "/%2e%2e/key.pem"):
            assert get(one.port, path)[0] == 404
        assert get(one.port, "/state", host="evil.example")[0] == 403  # a name that was bound to 127.0.0.1 meanwhile
        assert get(one.port, "/state", host=f"localhost:{one.port}")[0] == 200
        assert get(one.port, "/state", method="POST")[0] == 501
        assert get(one.port, "/metrics")[0] == 404
    finally:
        one.close()


def test_who_is_slow_waits_alone(outlook, status, monkeypatch):
    """More idle connections than places: they are turned away or time out, and others are answered."""
    monkeypatch.setattr(window._Handler, "timeout", 0.5)
    outlook.show(status)
    one = Window("127.0.0.1:0", window.page(outlook), local=True)
    idle = [socket.create_connection(("127.0.0.1", one.port)) for _ in range(3 * window.PLACES)]
    try:
        assert wait_for(lambda: answers(one.port, "/healthz"), 20)
    finally:
        for other in idle:
            other.close()
        one.close()


def test_who_speaks_a_letter_at_a_time_is_hung_up_on(monkeypatch):
    """Each letter comes in time: all of them together do not."""
    monkeypatch.setattr(window._Handler, "timeout", 0.5)
    one = Window("127.0.0.1:0", {"/": lambda: (200, "text/plain", b"here\n")})
    began = time.monotonic()
    with socket.create_connection(("127.0.0.1", one.port)) as slow:
        slow.settimeout(0.05)

        def hung_up():
            try:
                slow.send(b"G")
                return slow.recv(1) == b""
            except TimeoutError:
                return False
            except ConnectionError:
                return True

        try:
            assert wait_for(hung_up, 10) and time.monotonic() - began >= 0.5
            assert get(one.port, "/")[2] == "here\n"
        finally:
            one.close()


def test_who_never_reads_is_hung_up_on(monkeypatch):
    """An answer that fills all buffers."""
    monkeypatch.setattr(window._Handler, "timeout", 0.5)
    monkeypatch.setattr(window, "PLACES", 1)
    large = b"x" * (1 << 25)
    one = Window("127.0.0.1:0", {"/large": lambda: (200, "text/plain", large), "/": lambda: (200, "text/plain", b"")})
    with socket.create_connection(("127.0.0.1", one.port)) as deaf:
        deaf.sendall(b"GET /large HTTP/1.0\r\n\r\n")
        deaf.recv(1)  # it has the only place
        try:
            assert wait_for(lambda: answers(one.port, "/"), 20)
        finally:
            one.close()


def test_a_port_in_use_is_one_line(outlook):
    with socket.create_server(("127.0.0.1", 0)) as taken:
        address = f"127.0.0.1:{taken.getsockname()[1]}"
        with pytest.raises(OSError, match=f"cannot listen on {address}: in use"):
            Window(address, {})


def test_the_log_says_what_is_new_and_once(status, capsys):
    with json_log() as log:
        for _ in range(3):
            log.show(status)
        status.neighbours = {**status.neighbours, "elm": {**status.neighbours["elm"], "up": True, "trouble": ""}}
        log.show(status)
        logging.getLogger("confide.door").warning("turned away %d", 5)
    lines = [json.loads(line) for line in capsys.readouterr().err.splitlines()]
    assert [line["event"] for line in lines] == ["state", "neighbour", "neighbour", "progress", "neighbour", "log"]
    assert lines[1]["neighbour"] == "birch" and lines[2]["trouble"] == 'says "no"\n<b>' and lines[4]["up"] is True
    assert lines[5]["message"] == "turned away 5" and lines[5]["level"] == "warning"
    assert all({"time", "level", "event"} <= set(line) for line in lines)


@pytest.mark.parametrize(
    ("args", "words"),
    [(["--log", "xml"], "--log xml: must be text or json"), (["--metrics", "9000"], "must be host:port"),
     (["--proxy", "socks5://name:secret@proxy"], "must be http://host:port")],
)  # fmt: skip
def test_options_are_checked_before_anything_is_done(tmp_path, args, words):
    village = Village(tmp_path, CDP, seed=None, budget=(20.0, 1e-5))
    done = CliRunner().invoke(app, [*village.arguments("ash"), *args])
    said = " ".join(done.stderr.split()) + str(done.exception)
    assert done.exit_code != 0 and words in said and "secret" not in said
    assert village.rounds_sent("ash") == 0


def test_a_node_listens_somewhere_or_is_found_at_a_relay(tmp_path):
    for args in ([], ["--listen", "127.0.0.1:7001", "--outbound"]):
        done = CliRunner().invoke(app, ["node", "init", "--name", "ash", "--home", str(tmp_path / "ash"), *args])
        assert done.exit_code != 0 and "give either --listen" in done.stderr and not (tmp_path / "ash").exists()
    done = CliRunner().invoke(app, ["node", "init", "--name", "ash", "--home", str(tmp_path / "ash"), "--outbound"])
    assert done.exit_code == 0 and 'address = "relay"' in done.stdout


def canaries(folder):
    """Rows whose numbers nobody would write by chance; texts of them as logs would show them."""
    rng = np.random.default_rng(1)
    texts = set()
    for name, size in zip(NAMES, SIZES, strict=True):
        X = np.round(rng.uniform(1, 9, (size, 4)), 6) / 10
        np.savez(folder / f"{name}.npz", X=X, y=np.where(rng.random(size) < 0.5, 1.0, -1.0))
        texts |= {f"{v:.6f}" for v in X.ravel()}
    return texts


@pytest.mark.slow
def test_a_run_watched_from_outside(tmp_path):
    """Five nodes; one is asked for metrics, state and health while it trains, and logs no value of a row."""
    pytest.importorskip("prometheus_client")
    ports = free_ports(2)
    with Village(tmp_path, {**CDP, "rounds": 100}, seed=None, budget=(50.0, 1e-5)) as village:
        rows, usual = canaries(tmp_path), village.arguments
        more = ["--metrics", f"127.0.0.1:{ports[0]}", "--page", str(ports[1]), "--log", "json"]
        village.arguments = lambda name, file=None: [*usual(name, file), *(more if name == "ash" else [])]
        village.start("ash", "birch", "cedar", "elm")
        seen = SimpleNamespace(metrics="", state={})

        def told():
            try:
                seen.state, seen.metrics = json.loads(get(ports[1], "/state")[2]), get(ports[0], "/metrics")[2]
            except OSError:
                return False
            return seen.state.get("state") == "agreeing" and seen.state["neighbours"]["birch"]["up"]

        assert wait_for(told, 60), village.log("ash")
        assert 'confide_neighbour_up{neighbour="birch"} 1.0' in seen.metrics
        assert get(ports[0], "/healthz")[0] == 200 and get(ports[0], "/state")[0] == 404
        village.start("doum")  # whose signature all wait for
        assert village.join() == dict.fromkeys(NAMES, 0)
        lines = [json.loads(line) for line in village.log("ash").splitlines() if line.startswith('{"time"')]
        states = [line["state"] for line in lines if line["event"] == "state"]
        assert states[-1] == "finished" and "training" in states
        log = village.log("ash")
        assert not any(text in log or text in seen.metrics or text in json.dumps(seen.state) for text in rows)
        with Ledger(tmp_path / "ash" / "ledger.sqlite") as ledger:
            balance = ledger.balance("ash")
            assert village.status("ash")["spent_epsilon"] == pytest.approx(balance.spent_epsilon)
            assert village.status("ash")["left_epsilon"] == pytest.approx(balance.left_epsilon)


@pytest.mark.slow
def test_a_refusal_is_a_line_of_the_log_without_the_value_that_was_refused(tmp_path):
    with Village(tmp_path, CDP, seed=None, budget=(20.0, 1e-5)) as village:
        X = np.full((12, 4), 0.5)
        X[3, 2] = np.nan
        np.savez(tmp_path / "ash.npz", X=X, y=np.full(12, 0.123456789))
        usual = village.arguments
        village.arguments = lambda name, file=None: [*usual(name, file), "--log", "json"]
        village.start()
        assert village.join("ash")["ash"] == 2
        last = json.loads(village.log("ash").splitlines()[-1])
        assert last["event"] == "error" and last["code"] == 2 and "0.123456789" not in village.log("ash")


def amendment_in_force(village):
    """Papers of ash: birch is left out, and ash has a new key and a higher cap; the new card."""
    home = village.folder / "ash"
    card = load_card(new_key(home))
    ids = {**village.identities, "ash": Identity.load(card_folder(home, card))}
    state, papers = village.federation, Papers.of(home, village.federation)
    change = Amendment(state.digest, state.head, 1, ("birch",), epsilon=30.0)
    for number, after in ((1, ids | village.identities), (2, ids)):  # a new key is an amendment of its own
        for name in NAMES:
            if name != "birch":
                papers.sign_amendment(after[name], change)
        assert papers.current.head == change.hash
        change = Amendment(state.digest, papers.current.head, number + 1, cards=(card,))
    return papers.current, card


def card_folder(home, card):
    return home / "keys" / card.fingerprint[:16]


def checked(state, card):
    """What is shown follows the amendment."""
    assert state["map"]["members"] == ["ash", "cedar", "doum", "elm"]
    assert not any("birch" in link for link in state["map"]["links"])
    assert set(state["certificate_days"]) == {"ash", "elm"} and state["cap_epsilon"] == 30.0
    assert "birch" not in state["neighbours"]
    until = (card.valid_until - datetime.datetime.now(datetime.UTC)).total_seconds() / 86400
    assert state["certificate_days"]["ash"] == pytest.approx(until, abs=1e-3)


def test_what_is_shown_follows_amendments(tmp_path, status, monkeypatch):
    """One that was in force when the node started; the old certificate is about to end, and is watched no more."""
    monkeypatch.setattr(identities, "YEARS", 0.05)
    village = Village(tmp_path, CDP, seed=None, budget=(20.0, 1e-5))
    monkeypatch.undo()
    seen = []
    monkeypatch.setattr(window, "metrics", lambda outlook: seen.append(outlook) or {})
    _, card = amendment_in_force(village)
    with watched(lambda status: None, tmp_path / "ash", village.file, "127.0.0.1:0", None) as (show, _):
        show(status)
        checked(seen[0].state(), card)


def test_what_is_shown_follows_an_amendment_that_comes_while_the_node_runs(tmp_path, monkeypatch):
    """The daemon says what it holds to each time that it begins anew."""
    village = Village(tmp_path, CDP, seed=None, budget=(20.0, 1e-5))
    outlook, said = Outlook(village.federation, "ash"), []

    def run_once(home, source, data, federation, identity, papers, *rest):
        outlook.show(status := Status("ash", "village", "0" * 16, "CDPADMM", "proven", 40, state="amended"))
        said.append(outlook.state())
        if len(said) > 1:
            return Status(**{**vars(status), "state": "finished"})
        said.append(amendment_in_force(village)[1])
        papers.refresh()
        return status

    monkeypatch.setattr(daemon, "_run", run_once)
    daemon.run(tmp_path / "ash", village.file, None, hold=outlook.hold)
    assert said[0]["map"]["members"] == list(NAMES) and said[0]["cap_epsilon"] == 20.0
    checked(said[2], said[1])
