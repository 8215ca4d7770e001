"""Signals go out: one file per sink, and the Prometheus families about agents."""
