"""The log: the port in `port.py`, the embedded logs (memory, disk) and the Kafka log behind it."""
