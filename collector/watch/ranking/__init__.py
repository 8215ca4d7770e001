"""Ranks sessions among the earlier sessions of their agent and the earlier runs of their task."""
