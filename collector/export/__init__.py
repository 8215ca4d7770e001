"""What Prometheus reads: counters, histograms and gauges about agents, and the push of metrics."""
