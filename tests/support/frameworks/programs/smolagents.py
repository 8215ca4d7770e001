from shop import QUESTION, find_order
from smolagents import OpenAIServerModel, ToolCallingAgent, tool

model = OpenAIServerModel(model_id="gpt-4o-mini")
ToolCallingAgent(tools=[tool(find_order)], model=model).run(QUESTION)
