"""Everyday sessions of agents, healthy and in trouble, and the OTLP that instrumentations would send of them."""
