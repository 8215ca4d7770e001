import langwatch
from langchain.agents import create_agent
from langchain_core.tools import tool
from langchain_openai import ChatOpenAI
from shop import QUESTION, find_order

agent = create_agent(ChatOpenAI(model="gpt-4o-mini"), tools=[tool(find_order)])
agent.invoke(
    {"messages": [{"role": "user", "content": QUESTION}]},
    config={"callbacks": [langwatch.get_current_trace().get_langchain_callback()]},
)
