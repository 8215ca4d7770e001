"""Which rooms run in this process, and what each is given."""
