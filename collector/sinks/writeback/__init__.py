"""Scores written back into the tools where people look: what the sinks of those tools share."""
