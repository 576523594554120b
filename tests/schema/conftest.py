"""Arrow reads the files of these tests, small as they are; those of the other reader ask for it."""

import pytest

from confide.schema import tables


@pytest.fixture(autouse=True, scope="module")
def arrow():
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(tables, "SMALL", 0)
        yield
