import asyncio

import shop
from semantic_kernel.agents import ChatCompletionAgent
from semantic_kernel.connectors.ai.open_ai import OpenAIChatCompletion
from semantic_kernel.functions import kernel_function


class Shop:
    @kernel_function
    def find_order(self, order: str) -> str:
        return shop.find_order(order)


async def turn():
    model = OpenAIChatCompletion(ai_model_id="gpt-4o-mini")
    await ChatCompletionAgent(service=model, name="clerk", plugins=[Shop()]).get_response(
        shop.QUESTION
    )


asyncio.run(turn())
