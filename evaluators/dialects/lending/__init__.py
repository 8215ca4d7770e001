"""Log records in a trace: what they say is lent to the spans they belong to, before any span is read."""
