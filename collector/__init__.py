"""The service around the evaluators: receives, assembles, scores, publishes."""
