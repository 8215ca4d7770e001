"""Texts, JSON values and tool calls compared with what was expected."""
