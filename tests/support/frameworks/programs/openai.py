from openai import OpenAI
from shop import FUNCTION, QUESTION, find_order

messages = [{"role": "user", "content": QUESTION}]
tools = [{"type": "function", "function": FUNCTION}]
client = OpenAI()
asked = client.chat.completions.create(model="gpt-4o-mini", messages=messages, tools=tools)
(call,) = asked.choices[0].message.tool_calls
messages += [
    asked.choices[0].message.model_dump(exclude_none=True),
    {"role": "tool", "tool_call_id": call.id, "content": find_order("A-1001")},
]
client.chat.completions.create(model="gpt-4o-mini", messages=messages, tools=tools)
