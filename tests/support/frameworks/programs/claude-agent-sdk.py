import asyncio

from claude_agent_sdk import ClaudeAgentOptions, query
from shop import QUESTION


async def run():
    async for _ in query(prompt=QUESTION, options=ClaudeAgentOptions(allowed_tools=["Bash"])):
        pass


asyncio.run(run())
