import litellm
from shop import QUESTION

litellm.completion(model="openai/gpt-4o-mini", messages=[{"role": "user", "content": QUESTION}])
