"""The five papers: their figures and tables, their theorems as calculators, and their data."""
