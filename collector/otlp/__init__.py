"""OTLP as bytes, protobuf and JSON: reading, splitting, showing and sending it."""
