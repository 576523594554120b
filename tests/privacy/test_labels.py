"""Labels print as they are documented."""

import pytest

from confide.privacy import Guarantee, Label


def test_labels_are_the_four_documented_ones():
    assert [str(label) for label in Label] == ["proven", "assumed", "refuted", "none"]


def test_guarantee_prints_label_and_reason():
    assert str(Guarantee(Label.PROVEN, "rows are clipped")) == "proven: rows are clipped"
    assert Guarantee("refuted", "an audit contradicts it").label is Label.REFUTED


@pytest.mark.parametrize("bad", [("certain", "x"), ("proven", ""), ("proven", "two\nlines"), (None, "x")])
def test_bad_guarantees_are_one_clear_line(bad):
    with pytest.raises(ValueError, match=r"given") as caught:
        Guarantee(*bad)
    assert "\n" not in str(caught.value)
