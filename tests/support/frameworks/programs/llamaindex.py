import asyncio

from llama_index.core.agent.workflow import FunctionAgent
from llama_index.llms.openai import OpenAI
from shop import QUESTION, find_order


async def turn():
    await FunctionAgent(name="clerk", tools=[find_order], llm=OpenAI(model="gpt-4o-mini")).run(
        QUESTION
    )


asyncio.run(turn())
