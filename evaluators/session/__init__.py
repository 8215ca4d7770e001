"""Evaluators of a session, one file each."""
