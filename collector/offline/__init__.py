"""The service without sockets: recordings and the log's history, scored."""
