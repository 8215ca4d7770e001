"""Spans become traces: open traces, closing rules, late spans."""
