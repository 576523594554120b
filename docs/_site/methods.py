"""A page for every method of the registry: its docstring, parameters, guarantee and an example that has run."""

from __future__ import annotations

import contextlib
import inspect
import io
import sys
from dataclasses import MISSING, fields
from typing import Any

from docstrings import markdown, sentence, wrapped

from confide.algorithms import PHASES, REGISTRY, Algorithm
from confide.cli.algorithms import NETWORKS
from confide.runs.usual import usual_guarantee

NOTES = {"objective": "Objective perturbation", "zeroth": "Zeroth-order gradients"}  # derivations that methods share
FAMILIES = {
    "Plain ADMM": ("ADMM", "LinearizedADMM", "FADMM"),
    "Gaussian noise on a gradient step": (
        "CDPADMM", "DDPADMM", "DPADMM", "FDPADMM", "DPSGD", "PrivatePDML", "PrivateZeroth",
    ),
    "Noise on, or inside, an exact minimisation": ("RADMM", "MRADMM", "DVP", "PVP", "MADMM"),
    "As published, without a guarantee that holds": ("DZOA", "PDML"),
    "Central baselines": ("ORZO", "ZOOADMM"),
    "Phases before learning": ("SecondMoment",),
}  # fmt: skip

ROWS = """\
rng = np.random.default_rng(0)
X = rng.normal(size=(2000, 3))
"""
PROBLEMS = {
    "logistic": """\
y = np.where(X @ [1.0, 2.0, -1.0] + rng.logistic(size=2000) > 0, 1.0, -1.0)
shards = confide.Shards.split(X, y, parties=5).clip_rows(1.0)
problem = confide.Problem(shards, confide.losses.Logistic(), confide.penalties.L2(0.05))
""",
    "squared": """\
y = X @ [1.0, 2.0, -1.0] + 0.1 * rng.normal(size=2000)
shards = confide.Shards.split(X, y, parties=5)
problem = confide.Problem(shards, confide.losses.Squared(), confide.penalties.L2(0.05))
""",
    "quantile": """\
y = X @ [1.0, 2.0, -1.0] + rng.normal(size=2000)
shards = confide.Shards.split(X, y, parties=5)
problem = confide.Problem(shards, confide.losses.Quantile(0.9), confide.penalties.L2(0.05))
""",
    "labels": """\
y = np.where(X @ [1.0, 2.0, -1.0] > 0, 1.0, -1.0)
reported = confide.privacy.randomize_labels(y, 1.0, seed=0)              # at the users, with ε = 1
shards = confide.Shards.split(X, reported, parties=5).clip_rows(1.0)
loss = confide.losses.NoisyLabels(confide.losses.Logistic(), epsilon=1.0)
problem = confide.Problem(shards, loss, confide.penalties.L2(0.1))
""",
}
GAUSSIAN = "{name}(rounds=50, coupling=0.1, step=2.0, clip=0.5).calibrated({public}, epsilon=1.0, delta=1e-5)"
OBJECTIVE = "{name}(rounds=30, coupling=0.1, release_noise=0.01).calibrated({public}, epsilon=4.0, delta=1e-5)"
EXAMPLES = {
    "ADMM": ("logistic", "{name}(rounds=50, coupling=0.1)"),
    "LinearizedADMM": ("logistic", "{name}(rounds=200, coupling=0.1, step=2.0)"),
    "CDPADMM": ("logistic", GAUSSIAN), "DDPADMM": ("logistic", GAUSSIAN),
    "DPADMM": ("logistic", GAUSSIAN.replace("coupling=0.1, step=2.0", "coupling=0.2, step=2.0")),
    "DPSGD": ("logistic", GAUSSIAN.replace("coupling=0.1, ", "")),
    "RADMM": ("logistic", OBJECTIVE), "MRADMM": ("logistic", OBJECTIVE), "DVP": ("logistic", OBJECTIVE),
    "MADMM": ("logistic", OBJECTIVE.replace("coupling=0.1,", "coupling=0.1, dual_step=0.1,")),
    "PVP": ("logistic", "{name}(rounds=30, coupling=0.1).calibrated({public}, epsilon=1.0, delta=1e-5)"),
    "FADMM": ("quantile", "{name}(rounds=100, coupling=0.3)"),
    "FDPADMM": (
        "quantile",
        "{name}(rounds=100, coupling=0.3, step=3.0, clip=1.0).calibrated({public}, epsilon=1.0, delta=1e-5)",
    ),
    "DZOA": ("squared", "{name}(rounds=20, coupling=0.2, step=2.0, inner_steps=20)"),
    "PrivateZeroth": (
        "squared",
        "{name}(rounds=50, coupling=0.2, step=0.2, directions=5, clip=2.0).calibrated({public}, 4.0, 1e-5)",
    ),
    "ORZO": ("squared", "{name}(rounds=500, step=2.0)"), "ZOOADMM": ("squared", "{name}(rounds=500, step=2.0)"),
    "PDML": ("labels", "{name}(rounds=30, coupling=0.1, objective_noise=0.5, noise=0.1)"),
    "PrivatePDML": ("labels", "{name}(rounds=50, coupling=0.1).calibrated({public}, epsilon=1.0, delta=1e-5)"),
    "SecondMoment": ("squared", "{name}(norm=2.0).calibrated({public}, epsilon=1.0, delta=1e-5)"),
}  # fmt: skip


def kinds() -> dict[str, type[Algorithm]]:
    return {**REGISTRY, **PHASES}


def slug(name: str) -> str:
    return f"{name.lower()}.md"


def links() -> dict[str, str]:
    """What a name in backticks leads to, from a method's page."""
    files = {module(kind): slug(name) for name, kind in kinds().items()}
    return {name: slug(name) for name in kinds()} | files | {name: slug(name) for name in NOTES}


def module(kind: type[Algorithm]) -> str:
    return kind.__module__.rsplit(".", 1)[-1]


def docstring(kind: type[Algorithm]) -> str:
    return inspect.cleandoc(sys.modules[kind.__module__].__doc__ or "")


def page(name: str) -> str:
    """The page of one method."""
    kind = kinds()[name]
    own = {k: v for k, v in links().items() if v != slug(name)}
    first, _, rest = docstring(kind).partition("\n\n")
    code = example(name)
    return (
        f"# {name}\n\n**{markdown(first, own).strip()}**\n\n{facts(kind)}\n\n{markdown(rest, own)}\n"
        f"## Parameters\n\n{parameters(kind)}\n\n"
        f"## Example\n\n```python\n{code}```\n\n```text\n{output(code)}```\n\n"
        f"Source: `src/confide/algorithms/{module(kind)}.py`\n"
    )


def facts(kind: type[Algorithm]) -> str:
    """Network, losses and guarantee at a glance."""
    guarantee, settings = usual_guarantee(kind)
    how = f" with {', '.join(f'`{s}`' for s in settings)}" if settings and guarantee.label != "none" else ""
    network = {"peer": "peers", "all": "a hub that relays sums", "central": "none: rows in one place"}[kind.topology]
    label = f"**{guarantee.label}**{how}: {guarantee.reason}"
    return f"| network | losses | guarantee |\n|---|---|---|\n| {network} | {kind.needs} | {label} |"


def parameters(kind: type[Algorithm]) -> str:
    """Every public parameter with its default; one number, or one per agent where the type allows it."""
    rows = ["| parameter | default | may differ by agent |", "|---|---|---|"]
    for field in fields(kind):
        default = "required" if field.default is MISSING else f"`{field.default!r}`"
        rows.append(f"| `{field.name}` | {default} | {'yes' if 'Parameter' in str(field.type) else ''} |")
    return "\n".join(rows)


def example(name: str) -> str:
    """A program of a few lines that runs as it stands."""
    kind = kinds()[name]
    about, call = EXAMPLES[name]
    central = kind.topology == "central"
    graph = "" if central else "graph = confide.Graph.ring(5)\n"
    call = call.format(name=f"confide.algorithms.{name}", public="problem.public(graph)")
    record = ", record=()" if name in PHASES else ""
    shown = 'f"norm of the second moment {np.linalg.norm(run.model):.3f}"'
    if name not in PHASES:
        shown = "f\"relative error to the optimum {run.history['error'][-1, 0]:.1e}\""
    return (
        f"import numpy as np\n\nimport confide\n\n{ROWS}{PROBLEMS[about]}{graph}method = {call}\n"
        f"run = confide.simulate(problem, {'None' if central else 'graph'}, method{record})\n"
        f"print({shown})\nprint(run.privacy)\n"
    )


def output(code: str) -> str:
    """What the example prints."""
    out = io.StringIO()
    with contextlib.redirect_stdout(out):
        exec(compile(code, "example", "exec"), {"__name__": "example"})
    return wrapped(out.getvalue())


def overview() -> str:
    """All methods in a table, by family."""
    left_out = set(kinds()) - {name for names in FAMILIES.values() for name in names}
    groups = {**FAMILIES, **({"Others": tuple(sorted(left_out))} if left_out else {})}
    parts = [
        "# Methods\n\nOne page per method, made from the docstring of its file: what it does, where it was published, "
        "its lines, its symbols, where it differs from the paper and why, and its privacy. The label is that of its "
        "usual private setting on rows clipped to a public norm; the page says how to ask for it. What labels mean is "
        "in [the privacy model](../privacy.md).\n"
    ]
    for title, names in groups.items():
        rows = []
        for name in names:
            kind = kinds()[name]
            what = sentence(docstring(kind)).partition(": ")[2] or sentence(docstring(kind))
            what, label = what[:1].upper() + what[1:], usual_guarantee(kind)[0].label
            rows.append(f"| [{name}]({slug(name)}) | {NETWORKS[kind.topology]} | {label} | {what} |")
        parts.append(f"## {title}\n\n| method | network | guarantee | |\n|---|---|---|---|\n" + "\n".join(rows) + "\n")
    also = ", ".join(f"[{title.lower()}]({slug(name)})" for name, title in NOTES.items())
    return "\n".join([*parts, f"Derivations that several methods share: {also}.\n"])


def note(name: str) -> str:
    """A module that several methods share, such as objective perturbation."""
    text = inspect.cleandoc(sys.modules[f"confide.algorithms.{name}"].__doc__ or "")
    return f"# {NOTES[name]}\n\n{markdown(text, {k: v for k, v in links().items() if v != slug(name)})}"


def pages() -> dict[str, str]:
    """Path in the site -> Markdown."""
    return {
        "algorithms/index.md": overview(),
        **{f"algorithms/{slug(name)}": page(name) for name in kinds()},
        **{f"algorithms/{slug(name)}": note(name) for name in NOTES},
    }


def navigation() -> list[Any]:
    return [
        "algorithms/index.md",
        *({name: f"algorithms/{slug(name)}"} for name in kinds()),
        {"Derivations": [{title: f"algorithms/{slug(name)}"} for name, title in NOTES.items()]},
    ]
