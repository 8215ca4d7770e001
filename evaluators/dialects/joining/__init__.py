"""Facts of spans to one trace: tree, model calls, tool calls, texts, totals."""
