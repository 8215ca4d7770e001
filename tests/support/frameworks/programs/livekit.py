import asyncio

from livekit.agents import Agent, AgentSession, function_tool
from livekit.plugins import openai
from shop import QUESTION, find_order


async def run():
    set_tracer_provider(provider, metadata={"langfuse.session.id": "..."})
    clerk = Agent(instructions="You find orders.", tools=[function_tool(find_order)])
    async with AgentSession(llm=openai.LLM(model="gpt-4o-mini")) as session:
        await session.start(clerk)
        await session.run(user_input=QUESTION)


asyncio.run(run())
