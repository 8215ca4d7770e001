"""Feedback as it arrives: posted to a path of its own, or told by OTLP events and attributes."""
