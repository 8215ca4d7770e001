"""Where signals go: one file per sink."""
