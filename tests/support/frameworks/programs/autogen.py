import asyncio

from autogen_agentchat.agents import AssistantAgent
from autogen_ext.models.openai import OpenAIChatCompletionClient
from shop import QUESTION, find_order


async def turn():
    client = OpenAIChatCompletionClient(model="gpt-4o-mini")
    agent = AssistantAgent("clerk", client, tools=[find_order], reflect_on_tool_use=True)
    await agent.run(task=QUESTION)


asyncio.run(turn())
