from anthropic import Anthropic
from shop import QUESTION

Anthropic().messages.create(
    model="claude-sonnet-4-5", max_tokens=100, messages=[{"role": "user", "content": QUESTION}]
)
