"""Attributes of each instrumentation become the normalised trace; one file per dialect."""
