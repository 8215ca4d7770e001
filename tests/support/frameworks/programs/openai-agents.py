from agents import Agent, OpenAIChatCompletionsModel, Runner, function_tool
from openai import AsyncOpenAI
from shop import QUESTION, find_order

model = OpenAIChatCompletionsModel(model="gpt-4o-mini", openai_client=AsyncOpenAI())
agent = Agent(name="clerk", model=model, tools=[function_tool(find_order)])
Runner.run_sync(agent, QUESTION)
