import json
import os

from azure.ai.evaluation import GroundednessEvaluator, OpenAIModelConfiguration, evaluate

with open("data.jsonl", "w") as file:
    for trace_id in trace_ids:
        row = {"trace_id": trace_id, "response": "Paris", "context": "Paris is the capital."}
        print(json.dumps(row), file=file)
model = OpenAIModelConfiguration(
    type="openai", model="gpt-4o", api_key="none", base_url=os.environ["OPENAI_BASE_URL"]
)
results = evaluate(data=file.name, evaluators={"groundedness": GroundednessEvaluator(model)})
