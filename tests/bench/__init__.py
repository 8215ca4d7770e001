"""Ratios inside one run, against a server that only transports. Never a timed test."""
