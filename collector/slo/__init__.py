"""The Prometheus rules of `spanwise slo`: one template, as data. Pure."""
