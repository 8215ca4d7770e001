"""Spans become traces: the buffer, its closing rules, late spans."""
