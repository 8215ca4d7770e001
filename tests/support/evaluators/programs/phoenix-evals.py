from phoenix.evals.metrics import exact_match

results = [
    exact_match.evaluate({"output": said, "expected": "Paris"}) for said in ("Paris", "Rome")
]
