from haystack import Pipeline
from haystack.components.agents import Agent
from haystack.components.generators.chat import OpenAIChatGenerator
from haystack.dataclasses import ChatMessage
from haystack.tools import create_tool_from_function
from shop import QUESTION, find_order

agent = Agent(
    chat_generator=OpenAIChatGenerator(model="gpt-4o-mini"),
    tools=[create_tool_from_function(find_order)],
)
pipeline = Pipeline()
pipeline.add_component("agent", agent)
pipeline.run({"agent": {"messages": [ChatMessage.from_user(QUESTION)]}})
