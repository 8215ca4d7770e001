from ragas import EvaluationDataset, evaluate
from ragas.metrics import ExactMatch

rows = [
    {"user_input": "Capital of France?", "response": said, "reference": "Paris"}
    for said in ("Paris", "Rome")
]
result = evaluate(EvaluationDataset.from_list(rows), metrics=[ExactMatch()], show_progress=False)
