"""OTLP over gRPC and HTTP: spans in, acknowledged once they are in the log."""
