from opentelemetry.trace import Link

scored = turns[0]
