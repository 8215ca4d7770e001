"""Prometheus families about agents."""
