"""Pure numbers: tail risk, rms, percentiles, pass@k, bounds."""
