from crewai import Agent, Crew, Task
from shop import QUESTION

clerk = Agent(role="clerk", goal="answer", backstory="a clerk", llm="openai/gpt-4o-mini")
task = Task(description=QUESTION, expected_output="an answer", agent=clerk)
Crew(agents=[clerk], tasks=[task]).kickoff()
