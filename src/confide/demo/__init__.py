"""The demonstrations: a cohort of simulated patients, five hospitals in one process, and five real nodes."""
