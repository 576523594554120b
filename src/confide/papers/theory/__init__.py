"""The papers' theorems as calculators: functions of public numbers, a module for each paper but CDP-ADMM.

    from confide.papers.theory import recycled_admm

Each returns what its theorem says, or says that the theorem's condition can't be met. Constants a paper leaves open
are arguments without defaults. The papers' privacy bounds are in :mod:`confide.privacy.published`.
"""
