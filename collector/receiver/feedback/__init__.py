"""Feedback as it arrives: posted to a path of its own, or carried by OTLP events and attributes."""
