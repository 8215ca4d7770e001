"""Log records in a trace: what they say is added to the spans they belong to, before any span is read."""
