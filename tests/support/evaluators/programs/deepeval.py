from deepeval import evaluate
from deepeval.metrics import ExactMatchMetric
from deepeval.test_case import LLMTestCase

cases = [
    LLMTestCase(input="Capital of France?", actual_output=said, expected_output="Paris")
    for said in ("Paris", "Rome")
]
result = evaluate(cases, [ExactMatchMetric()])
