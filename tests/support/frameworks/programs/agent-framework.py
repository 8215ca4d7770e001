import asyncio

from agent_framework import Agent
from agent_framework.openai import OpenAIChatCompletionClient
from shop import QUESTION, find_order


async def turn():
    client = OpenAIChatCompletionClient(model="gpt-4o-mini")
    await Agent(client, name="clerk", tools=[find_order]).run(QUESTION)


asyncio.run(turn())
