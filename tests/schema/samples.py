"""Schemas of every kind, and a real study as a hospital would export it."""

import numpy as np
import pandas as pd
from hypothesis import strategies as st
from sklearn import datasets

from confide.schema.schema import Column, Group, Schema, Target

texts = st.text(st.characters(exclude_categories=("Cs",)), min_size=1, max_size=12).filter(lambda t: t == t.strip())
ranges = st.tuples(st.floats(-1e9, 1e9), st.floats(1e-3, 1e9)).map(lambda r: (r[0], r[0] + r[1]))
lists = st.lists(texts, min_size=2, max_size=6, unique=True).map(tuple)


@st.composite
def columns(draw, name):
    kind = draw(st.sampled_from(["numeric", "category", "ignore"]))
    if kind == "numeric":
        low, high = draw(ranges)
        rule = draw(st.sampled_from([None, "missing", low, high]))
        marks = draw(st.sampled_from([(), ("-9", "n.k.")]))
        return Column(name, kind, low, high, (), rule, draw(st.sampled_from(["clip", "invalid"])), marks)
    if kind == "category":
        values = draw(lists)
        return Column(name, kind, categories=values, missing=draw(st.sampled_from([None, "missing", values[0]])))
    return Column(name, kind)


@st.composite
def schemas(draw):
    names = draw(st.lists(texts, min_size=3, max_size=7, unique=True))
    label, group = names.pop(), names.pop()
    fixed = [Column(names[0], "numeric", 0, 1), *(draw(columns(n)) for n in names[1:])]
    if draw(st.booleans()):
        low, high = draw(ranges)
        target = Target(label, "real", low=low, high=high)
    else:
        values = draw(lists)
        target = Target(label, "binary" if len(values) == 2 else "classes", values)
    parties = Group(group, draw(lists)) if draw(st.booleans()) else None
    return Schema(tuple(fixed), target, parties, draw(st.floats(1e-3, 1e3)), draw(st.booleans()))


def patients(seed=0, rows=slice(None)):
    """The diabetes study as a hospital would export it: ids, dates, and four ways to say "missing"."""
    df = datasets.load_diabetes(as_frame=True, scaled=False).frame.iloc[rows].reset_index(drop=True)
    rng = np.random.default_rng(seed)

    def punched(name, mark):
        df[name] = df[name].astype(object).where(rng.random(len(df)) > 0.05, mark)

    for name, mark in (("s1", -9), ("s2", 999), ("sex", 9), ("s6", "?"), ("s4", None), ("bp", "refused")):
        punched(name, mark)
    df.insert(0, "PatientID", rng.permutation(90_000)[: len(df)] + 10_000)
    df.insert(1, "row", np.arange(len(df)) + 1)
    df["admitted"] = (pd.Timestamp("2023-01-01") + pd.to_timedelta(rng.integers(0, 500, len(df)), "D")).astype(str)
    df["seen"] = rng.choice(["31/12/2023 07:15", "1/2/2024 23:59"], len(df))
    df["stamp"] = rng.choice([20230131, 20240228, 20241231], len(df))
    df["surname"] = [f"Patient {i}" for i in range(len(df))]
    df["ward"] = rng.choice(["east", "west", "-9"], len(df), p=[0.6, 0.35, 0.05])
    df["empty"] = None
    df["ill"] = np.where(df.pop("target") > 140, 1.0, 0.0)
    return df
