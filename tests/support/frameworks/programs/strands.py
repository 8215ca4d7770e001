from shop import QUESTION, find_order
from strands import Agent, tool
from strands.models.openai import OpenAIModel

agent = Agent(
    name="clerk",
    model=OpenAIModel(model_id="gpt-4o-mini"),
    tools=[tool(find_order)],
    trace_attributes={"session.id": "...", "gen_ai.agent.version": "1.4.2"},
)
agent(QUESTION)
