from pydantic_ai import Agent
from pydantic_ai.models.openai import OpenAIChatModel
from shop import QUESTION, find_order

Agent(OpenAIChatModel("gpt-4o-mini"), name="clerk", tools=[find_order]).run_sync(QUESTION)
