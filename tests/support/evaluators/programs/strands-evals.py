from strands_evals import Case, Experiment
from strands_evals.evaluators import Contains

experiment = Experiment(
    cases=[Case(name="capital", input="Capital of France?")], evaluators=[Contains("Paris")]
)


def answer(case):
    with tracer.start_as_current_span("invoke_agent desk", attributes=TURN):
        return "Paris"


experiment.run_evaluations(answer)
