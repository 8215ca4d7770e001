"""What measured the tables of docs/evidence.md and docs/alerting.md, mostly of recordings outside the repository."""
