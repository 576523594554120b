"""Image, compose file and services: linted, and their commands run as a container engine would run them."""

import os
import re
import shutil
import subprocess
import sys
from pathlib import Path

import pytest
from ports import free_ports

ROOT = Path(__file__).parent.parent
PACKAGING = ROOT / "packaging"
NODES = ("mercy", "northside", "st-agnes", "lakeview", "hillcrest")
pytestmark = pytest.mark.skipif(not PACKAGING.exists(), reason="packaging is in the checkout only")


def tool(name):
    found = shutil.which(name, path=f"{Path(sys.executable).parent}:{os.environ['PATH']}")
    if found is None:
        pytest.skip(f"{name} is not installed")
    return found


def environment():
    """What the image sets, by its Dockerfile."""
    text = (PACKAGING / "Dockerfile").read_text().replace("\\\n", " ")
    (line,) = re.findall(r"^ENV (.*)$", text, re.M)
    return dict(pair.split("=", 1) for pair in line.split())


def test_the_dockerfile_is_clean():
    done = subprocess.run([tool("hadolint"), PACKAGING / "Dockerfile"], capture_output=True, text=True, check=False)
    assert done.returncode == 0, done.stdout


def test_the_image_runs_without_root_and_keeps_everything_in_one_volume():
    text = (PACKAGING / "Dockerfile").read_text()
    last = text.split("\nFROM ")[-1]
    assert re.findall(r"^VOLUME (.*)$", last, re.M) == ["/confide"]
    assert re.findall(r"^USER (.*)$", last, re.M) == ["10001:10001"] and "ENTRYPOINT" in last.split("USER")[1]
    assert {v for k, v in environment().items() if k.startswith("CONFIDE_") and not v.startswith("/confide")} == set()


@pytest.mark.parametrize("unit", ["confide-node@.service", "confide-relay.service"])
def test_services_are_hardened(unit):
    """By systemd's own measure, of 10 for no protection at all; 2 and below is what it shows with a smile."""
    program = tool("systemd-analyze")
    args = [program, "security", "--offline=true", "--threshold=20", "--no-pager", PACKAGING / unit]
    done = subprocess.run(args, capture_output=True, text=True, check=False)
    if "Unknown" in done.stderr or "unrecognized option" in done.stderr:
        pytest.skip("this systemd-analyze has no --offline")
    assert done.returncode == 0, done.stdout[-300:] + done.stderr


@pytest.mark.parametrize("unit", ["confide-node@.service", "confide-relay.service"])
def test_services_know_the_exit_codes_and_the_options(unit):
    from typer.testing import CliRunner

    from confide.cli import app
    from confide.node.codes import Code

    fields = dict(re.findall(r"^(\w+)=(.*)$", (PACKAGING / unit).read_text(), re.M))
    never = {int(code) for code in fields["RestartPreventExitStatus"].split()}
    if "node" in unit:
        assert never == set(Code) - {Code.FINISHED, Code.TIMEOUT, Code.SYSTEM} and fields["SuccessExitStatus"] == "143"
    else:
        assert never == {Code.REFUSED}
    command = fields["ExecStart"].split()
    words = [word for word in command[1:] if not word.startswith(("-", "$", "/")) and word in ("node", "run", "relay")]
    help = CliRunner().invoke(app, [*words, "--help"]).stdout
    assert command[0] == "/opt/confide/bin/confide" and all(o in help for o in command if o.startswith("--"))


@pytest.mark.slow
def test_the_demo_runs_as_its_containers_would(tmp_path):
    """No engine is needed: setup and every service in a process, with the image's variables and folders put here.

    Names of containers become ports of this machine, and the volumes folders; all else is as compose.yaml has it.
    """
    yaml = pytest.importorskip("yaml")
    services = yaml.safe_load((PACKAGING / "compose.yaml").read_text())["services"]
    assert set(services) == {"setup", "relay", *NODES}
    assert all(one["read_only"] and one["cap_drop"] == ["ALL"] for one in services.values())
    listening = (*services, *(f"{n} metrics" for n in NODES))
    ports = dict(zip(listening, free_ports(len(listening)), strict=True))
    bin = tmp_path / "bin"
    bin.mkdir()
    (bin / "python").write_text(f'#!/bin/sh\nexec {sys.executable} "$@"\n')
    (bin / "confide").write_text(f"#!{sys.executable}\nfrom confide.cli import main\nmain()\n")
    for one in bin.iterdir():
        one.chmod(0o755)

    def placed(text, service):
        """As on this machine."""
        for name in ("relay", *NODES):
            text = re.sub(rf"\b{name}:7\d\d\d\b", f"127.0.0.1:{ports[name]}", text)
        text = re.sub(r"\$name:7000", '127.0.0.1:$(eval echo "\\\\$PORT_$(echo $name | tr -d -)")', text)
        text = re.sub(r"0\.0\.0\.0:7\d\d\d", f"127.0.0.1:{ports[service]}", text)
        text = text.replace("127.0.0.1:9000", f"127.0.0.1:{ports.get(f'{service} metrics', 0)}")
        return re.sub(r"(?<![\w.])/(agreed|homes)\b", rf"{tmp_path}/\1", text)

    def variables(service):
        image = {k: v.replace("/confide", str(tmp_path / "homes" / service)) for k, v in environment().items()}
        ours = {
            "PATH": f"{bin}:{os.environ['PATH']}",
            "PYTHONPATH": str(ROOT / "src") + ":" + os.environ.get("PYTHONPATH", ""),
        }
        ours_too = {k: os.environ[k] for k in ("HOME", "XDG_CACHE_HOME") if k in os.environ}
        del image["CONFIDE_CACHE"]  # what is compiled already need not be again
        doors = {f"PORT_{name.replace('-', '')}": str(port) for name, port in ports.items() if " " not in name}
        return {**image, **ours, **doors, "CONFIDE_THREADS": "1", **ours_too}

    for folder in ("agreed", "homes"):
        (tmp_path / folder).mkdir()
    script = placed((PACKAGING / "demo-setup.sh").read_text(), "setup")
    script = re.sub(r"^if .*chown.*$", "", script, flags=re.M)  # there are no other users here
    done = subprocess.run(
        ["/bin/sh", "-c", script], env=variables("setup"), capture_output=True, text=True, check=False
    )
    assert done.returncode == 0, done.stderr
    jobs = {}
    for name in ("relay", *NODES):
        args = [placed(word, name) for word in services[name]["command"]]
        jobs[name] = subprocess.Popen(["confide", *args], env=variables(name), stdout=subprocess.PIPE,
                                      stderr=subprocess.PIPE, text=True, cwd=tmp_path / "homes" / name,
                                      executable=bin / "confide")  # fmt: skip
    try:
        said = {name: jobs[name].communicate(timeout=900) for name in NODES}
        assert {name: jobs[name].returncode for name in NODES} == dict.fromkeys(NODES, 0), said
        assert all("finished, round 50 of 50" in out for out, _ in said.values())
        for name in NODES:
            kept = {path.name for path in (tmp_path / "homes" / name).iterdir()}
            assert {"key.pem", "ledger.sqlite", "runs"} <= kept
        jobs["relay"].terminate()
        out, _ = jobs["relay"].communicate(timeout=120)
        assert jobs["relay"].returncode == 0 and " calls, " in out
    finally:
        for job in jobs.values():
            if job.poll() is None:
                job.kill()
                job.communicate()
