"""Traces become outcomes: the desk, the session's sliding window."""
