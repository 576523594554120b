"""Tables for people who work with pandas or polars; neither is needed for anything else."""

from __future__ import annotations

from abc import abstractmethod
from typing import Any

from confide.errors import MissingExtra

Row = dict[str, Any]


class Tabular:
    """What can be shown as rows of named values."""

    @abstractmethod
    def rows(self) -> list[Row]:
        """One dictionary per row, all with the same names."""

    def to_pandas(self) -> Any:
        """A pandas.DataFrame of `rows`."""
        try:
            import pandas  # type: ignore[import-untyped]
        except ImportError:
            raise MissingExtra("to_pandas needs pandas: pip install pandas") from None
        return pandas.DataFrame(self.rows())

    def to_polars(self) -> Any:
        """A polars.DataFrame of `rows`."""
        try:
            import polars
        except ImportError:
            raise MissingExtra("to_polars needs polars: pip install polars") from None
        return polars.DataFrame(self.rows(), infer_schema_length=None)
