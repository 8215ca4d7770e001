"""Processes, waiting and starting: what every room runs on."""
