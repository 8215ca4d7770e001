import asyncio

from pipecat.frames.frames import EndFrame, LLMRunFrame
from pipecat.pipeline.pipeline import Pipeline
from pipecat.pipeline.runner import PipelineRunner
from pipecat.pipeline.task import PipelineTask
from pipecat.processors.aggregators.llm_context import LLMContext
from pipecat.processors.aggregators.llm_response_universal import LLMContextAggregatorPair
from pipecat.services.openai.llm import OpenAILLMService
from shop import QUESTION


async def run():
    sides = LLMContextAggregatorPair(LLMContext([{"role": "user", "content": QUESTION}]))
    llm = OpenAILLMService(model="gpt-4o-mini")
    pipeline = Pipeline([sides.user(), llm, sides.assistant()])
    task = PipelineTask(pipeline, enable_tracing=True, conversation_id="...")
    await task.queue_frames([LLMRunFrame(), EndFrame()])
    await PipelineRunner().run(task)


asyncio.run(run())
