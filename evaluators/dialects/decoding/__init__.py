"""OTLP bytes to spans, and attribute values to JSON. Nothing here knows what an attribute means."""
