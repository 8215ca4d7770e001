"""Apache Kafka as the log."""
