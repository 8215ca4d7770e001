"""The workers that read traces and run evaluators: the port that rooms call, its adapters, what runs in a worker."""
