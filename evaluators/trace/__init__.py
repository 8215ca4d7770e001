"""Evaluators of one trace, one file each."""
