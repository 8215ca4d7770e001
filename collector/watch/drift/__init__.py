"""Scores compared with their own past, behind `spanwise_drift_*`."""
