"""A real LangGraph agent whose traffic pauses: when is it named, and what is said until then?

`python -m scripts.research.named_langgraph` prints the row, as `scripts.research.named` does for made-up spans: 40 good
sessions, then 60 within 2:10 of which every other one fails, then nothing, as after a rollback. The exporter is set as
docs/frameworks/langgraph.md says, and has its own intervals. `python -m tests.support.tools.tool` installs the agent.
"""

import os
import subprocess
import sys
import tempfile
import time
from pathlib import Path

from scripts.research.named import AGENT, Hook, Story, Watcher, rows
from tests.support.frameworks.page_program import FOLDER, environment, program
from tests.support.scripted_models import ChatServer
from tests.support.service import Service
from tests.support.tools.tool import FRAMEWORKS, python_of

NAME = "langgraph"
AGENT_CODE = f"""
import time
from langchain.agents import create_agent
from langchain_core.tools import tool
from langchain_openai import ChatOpenAI
from shop import QUESTION

fails = False

@tool
def find_order(order: str) -> str:
    "Find an order."
    if fails:
        raise TimeoutError("the orders did not answer")
    return f"order {{order}}: shipped"

agent = create_agent(ChatOpenAI(model="gpt-4o-mini"), tools=[find_order], name="{AGENT}")
for number in range(100):
    fails = number >= 40 and number % 2 == 0
    print("fails" if fails else "works", flush=True)
    with using_attributes(session_id=f"s-{{number}}"):
        try:
            agent.invoke({{"messages": [{{"role": "user", "content": QUESTION}}]}})
        except TimeoutError:
            pass
    time.sleep(0.1 if number < 39 else 8 if number == 39 else 130 / 60)
"""


class RealAgent(Story):
    def __init__(self, service: Service, model: str, folder: Path) -> None:
        super().__init__(service.grpc, NAME, iter(()))
        file = folder / "app.py"
        file.write_text(program(NAME).partition("with using_attributes")[0] + AGENT_CODE)
        self._command = [python_of(FRAMEWORKS[0]), file]
        port = int(service.grpc.rpartition(":")[2])
        self._environment = {
            "PATH": os.environ["PATH"],
            "HOME": str(folder),
            "PYTHONPATH": str(FOLDER),
            "OPENAI_BASE_URL": f"{model}/v1",
            "OPENAI_API_KEY": "none",
            **environment(NAME, {4317: port, 4318: port}),
            "OTEL_SERVICE_NAME": NAME,
        }

    def run(self) -> None:
        with subprocess.Popen(  # noqa: S603 - its own command
            self._command, env=self._environment, stdout=subprocess.PIPE, text=True
        ) as agent:
            for line in agent.stdout or ():
                if line.strip() == "fails":
                    if not self.failing:
                        self.began, self.began_at = time.monotonic(), time.time()  # noqa: TID251 - log time is the machine's
                    self.failing += 1
                self.sent += 1


def main() -> None:
    hook = Hook()
    with (
        tempfile.TemporaryDirectory() as folder,
        ChatServer() as model,
        Service(Path(folder) / "data", f"notify.to.hook.webhook={hook.url}") as service,
    ):
        service.become_ready()
        agent = RealAgent(service, model.url, Path(folder))
        watcher = Watcher(service, hook, [agent])
        agent.start()
        while agent.is_alive():
            watcher.look()
            time.sleep(1)
        for row in rows(watcher):
            sys.stdout.write(f"{row}\n")
        for _, body in hook.taken:
            sys.stdout.write(f"{body['data']['annotations']['description']}\n")


if __name__ == "__main__":
    main()
