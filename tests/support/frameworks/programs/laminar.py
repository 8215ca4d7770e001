from lmnr import observe
from openai import OpenAI
from shop import QUESTION


@observe()
def turn(question: str) -> str:
    Laminar.set_trace_session_id("...")
    Laminar.set_span_attributes({"gen_ai.agent.version": "1.4.2"})
    asked = OpenAI().chat.completions.create(
        model="gpt-4o-mini", messages=[{"role": "user", "content": question}]
    )
    return asked.choices[0].message.content


turn(QUESTION)
