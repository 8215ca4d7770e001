import dspy
from shop import QUESTION

dspy.configure(lm=dspy.LM("openai/gpt-4o-mini", cache=False))
dspy.Predict("question -> answer")(question=QUESTION)
