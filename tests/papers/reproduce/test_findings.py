"""Findings and their verdicts, and how results are selected and kept."""

import re

import numpy as np
import pytest

from confide.papers.reproduce import Finding, Results, Trials, number, own, shape
from confide.papers.reproduce.page import causes, claims, page, span
from confide.papers.reproduce.results import load, save


@pytest.mark.parametrize(
    ("measured", "verdict", "difference"),
    [(1.1, "matches", "+10"), (0.92, "matches", "-8.0 %"), (1.11, "differs", "+11 %"), (0.5, "differs", "-50 %"),
     (np.nan, "differs", "not a number"), (np.inf, "differs", "not a number")],
)  # fmt: skip
def test_a_number_matches_within_its_relative_distance(measured, verdict, difference):
    finding = number("x", 1.0, measured, within=0.1000001)
    assert finding.verdict == verdict and finding.difference.startswith(difference)


def test_negative_and_zero_published_values():
    assert number("x", -2.0, -2.1, within=0.06).verdict == "matches"
    assert number("x", -2.0, 2.0, within=0.06).verdict == "differs"
    assert number("accuracy", 0.0, 2.9, absolute=3.0, unit=" %").verdict == "matches"
    assert number("accuracy", 75.0, 71.9, absolute=3.0, unit=" %").difference == "-3.1 % (±3 %)"
    with pytest.raises(ValueError, match="0 was published"):
        number("x", 0.0, 1.0, within=0.1)
    with pytest.raises(ValueError, match="either within=, a fraction, or absolute="):
        number("x", 1.0, 1.0)
    with pytest.raises(ValueError, match="either within=, a fraction, or absolute="):
        number("x", 1.0, 1.0, 0.1, absolute=1.0)


def test_shapes_and_causes():
    assert shape("a < b", "yes", 0.123456, True).verdict == "matches in shape"
    assert shape("a < b", "yes", 0.123456, True).measured == "0.1235"
    bare, explained = shape("a < b", "yes", "no", np.bool_(False)), shape("a < b", "yes", "no", False, why="erratum 3")
    assert bare.unexplained and not explained.unexplained and explained.to_json()["why"] == "erratum 3"
    assert shape("a < b", "yes", "no", False, why="  ").unexplained
    assert shape("a < b", "yes", "yes", True, why="in case").to_json()["why"] == ""  # only where it differs
    with pytest.raises(ValueError, match="verdict 'roughly'"):
        Finding("x", "1", "1", "", "roughly")


@pytest.mark.parametrize("given", [(0, 5, 1), (5, 5, 0), (5, 5, 6), (5, -1, -1)])
def test_trials_are_checked(given):
    with pytest.raises(ValueError, match="quick ≤ full"):
        Trials(*given)
    assert Trials(None, 5, 5).published is None


def pairs():
    return [({"m": m, "seeds": [a, a + 2]}, {"e": np.full((2, 3), a), "n": a}) for m in "xy" for a in (0, 2)]


def test_results_select_and_stack_in_order():
    results = Results(pairs(), 4)
    assert len(results) == 4 and results.trials == 4 and [t["m"] for t, _ in results] == list("xxyy")
    assert results.stack("e", m="y")[:, 0].tolist() == [0, 0, 2, 2] and results.stack("n", m="x").tolist() == [0, 2]
    assert results.one(m="x", seeds=(2, 4))["n"] == 2  # a tuple is what JSON makes of it
    assert len(results[1:3]) == 2
    with pytest.raises(ValueError, match=r"no task with m='z'; there are m in \"x\", \"y\""):
        results.where(m="z")
    with pytest.raises(ValueError, match="2 tasks"):
        results.one(m="x")


def test_a_value_comes_back_as_it_was(tmp_path):
    value = {"a": np.arange(6, dtype=np.int16).reshape(2, 3), "t": "array:a0", "n": None, "x": float("inf"), "k": True,
             "deep": {"list": [1, "text:", np.array(["u", "vw"])], "f": np.float32(0.5)},
             "e": np.zeros((0, 2))}  # fmt: skip
    save(tmp_path / "sub" / "v.npz", value, 1.5)
    again, seconds = load(tmp_path / "sub" / "v.npz")
    assert seconds == 1.5 and list(again) == list(value) and again["a"].dtype == np.int16
    for name in ("a", "e"):
        assert np.array_equal(again[name], value[name]) and again[name].shape == value[name].shape
    assert {k: again[k] for k in "tnxk"} == {k: value[k] for k in "tnxk"}
    assert again["deep"]["list"][:2] == [1, "text:"] and again["deep"]["list"][2].tolist() == ["u", "vw"]
    assert again["deep"]["f"] == 0.5


@pytest.mark.parametrize("value", [{"a": object()}, {"a": np.array([object()])}, {"a": {1: 2}}, {"a": {1, 2}}])
def test_what_would_need_pickle_is_refused(value, tmp_path):
    with pytest.raises(ValueError, match="measure returned"):
        save(tmp_path / "v.npz", value, 0.0)
    assert list(tmp_path.iterdir()) == []


def document(name, found, **more):
    return {"paper": "p", "name": name, "title": f"title of {name}", "text": "", "seconds": 1.0, "current": True,
            "trials": {"measured": 1, "published": None}, "findings": [f.to_json() for f in found],
            "judged": {"measured": {"commit": "abc"}, "criteria_before_the_run": True}, **more}  # fmt: skip


def test_our_own_checks_are_counted_apart_and_causes_told_once():
    found = [
        shape("a claim", "yes", "no", False, why="because"), shape("another", "yes", "no", False, why="because"),
        shape("a third", "yes", "yes", True), own("ours", "0.1", True), own("ours too", "9", False, why="so"),
    ]  # fmt: skip
    one = document("n", found)
    assert causes(claims([one])) == {"because": "cause A"}
    text = page([one])
    assert "**3 claims of the papers**: 0 match within the stated distance, 1 match in shape, 2 differ" in text
    assert "**2 checks of our own**, of what no paper says: 1 hold, 1 do not.\n" in text
    assert text.count("because") == 1 and "committed before the run that it judges at commit abc" in text
    assert "| 0 | 1 | 2 | 1 of 2 |" in text and "without a known cause" not in text


def tables(values=(1.0, 1.2, 2.0)):
    return [
        document(f"table{i}", [
            number("error", i, i * v, 0.15, why="because"), shape("falls", "yes", f"in {i}", True),
            own("ours", v, v < 2),
        ]) for i, v in enumerate(values, 1)
    ]  # fmt: skip


def test_a_sentence_over_several_tables_is_one_claim():
    alone = document("table1-constant", [shape("falls", "yes", "no", False, why="another choice")])
    text = page([*tables(), alone])
    assert "**3 claims of the papers**: 0 match within the stated distance, 1 match in shape, 2 differ" in text
    assert (
        "**1 checks of our own**, of what no paper says: 0 hold, 1 do not, **1 of them without a known cause**" in text
    )
    values = "| error | in brackets, ±15 % | 1 (1) | **2.4** (2) | **6** (3) |"
    assert f"{values} **differs**: holds in 1 of 3 tables; because |" in text and text.count("| falls |") == 2
    assert "| falls | yes | in 1 | in 2 | in 3 | **matches in shape**: holds in 3 of 3 tables |" in text
    assert "| ours | 1 | 1.2 | **2** | **holds in 2 of 3 tables**; cause unknown |" in text
    assert (
        "| [p table1 to table3](#p-table1-to-table3) | What is said of each of these tables | 0 | 1 | 1 | 0 of 1 |"
        in text
    )
    assert "| [p table2](#p-table2) | title of table2 |  |  |  |  |" in text
    assert (
        '<a id="p-table1-to-table3"></a>' in text and text.count("under [table1 to table3](#p-table1-to-table3)") == 3
    )
    assert [c.verdict for c in claims(tables((1.0, 1.1, 1.1)))] == ["matches", "matches in shape", "matches in shape"]


def test_tables_of_two_papers_and_a_table_and_a_figure_are_not_one():
    first, second, _ = tables()
    text = page([first, {**second, "paper": "q"}])
    assert "**4 claims of the papers**" in text and "What is said of each" not in text
    assert len(claims([first, {**second, "name": "fig2"}])) == 6
    assert len(claims([first, {**second, "name": "table2-fast"}])) == 6
    twice = document("fig1", [shape("falls", "yes", "a", True), shape("falls", "yes", "b", True)])
    assert len(claims([twice])) == 2 and len(claims([twice, {**twice, "name": "fig2"}])) == 2


def test_a_cause_may_say_that_none_is_known():
    found = [shape("a claim", "yes", "no", False, why="no cause is known: below ours in all tables")]
    assert "1 differ\nfor the reason given, **1 of them without a known cause**." in page([document("fig1", found)])


def test_whose_trials_they_are():
    def said(name, published):
        return re.findall(
            r"Trials: 1 measured, (.*?)\.", page([document(name, [], trials={"measured": 1, "published": published})])
        )

    assert said("fig1", 100) == ["100 published"] and said("table12", None) == ["the paper does not say how many"]
    assert said("fig1-long", None) == said("lemmas", 10) == ["the experiment is not in the paper"]


@pytest.mark.parametrize(
    ("names", "words"),
    [(["fig3"], "fig3"), (["fig4", "fig6"], "fig4 and fig6"), (["fig1", "fig2"], "fig1 and fig2"),
     (["table2", "table3", "table4"], "table2 to table4"), (["fig1", "fig2", "fig5"], "fig1, fig2 and fig5"),
     (["users"], "users")],
)  # fmt: skip
def test_groups_have_names(names, words):
    assert span(tuple(names)) == words


def test_the_time_of_all_is_told():
    assert "2 experiments, about 2.5 h of one core in all." in page(
        [document("fig1", [], seconds=3600.0), document("fig2", [], seconds=5400.0)]
    )
