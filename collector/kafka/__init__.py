"""The one place that handles aiokafka's clients, for the log and for the sink alike."""
