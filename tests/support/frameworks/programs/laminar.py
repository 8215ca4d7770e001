from lmnr import observe
from openai import OpenAI
from shop import QUESTION


@observe()
def turn(question: str) -> str:
    Laminar.set_trace_session_id("...")
    asked = OpenAI().chat.completions.create(
        model="gpt-4o-mini", messages=[{"role": "user", "content": question}]
    )
    return asked.choices[0].message.content


turn(QUESTION)
