"""What is missing in what has arrived, for which evaluator, and the setting that fixes it."""
