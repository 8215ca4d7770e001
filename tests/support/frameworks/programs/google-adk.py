import asyncio

from google.adk.agents import Agent
from google.adk.models.lite_llm import LiteLlm
from google.adk.runners import InMemoryRunner
from google.genai.types import Content, Part
from shop import QUESTION, find_order


async def turn():
    agent = Agent(name="clerk", model=LiteLlm(model="openai/gpt-4o-mini"), tools=[find_order])
    runner = InMemoryRunner(agent=agent, app_name="shop")
    await runner.session_service.create_session(app_name="shop", user_id="u", session_id="s")
    said = Content(role="user", parts=[Part(text=QUESTION)])
    async for _ in runner.run_async(user_id="u", session_id="s", new_message=said):
        pass


asyncio.run(turn())
