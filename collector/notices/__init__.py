"""Notices without a Prometheus (`notify`): the alerts of `spanwise slo` that this process can tell by itself."""
