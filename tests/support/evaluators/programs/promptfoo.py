import json
import os
import subprocess

tests = [
    {
        "vars": {"trace_id": trace_id, "said": said},
        "assert": [{"type": "equals", "value": "Paris"}],
    }
    for trace_id, said in zip(trace_ids, ("Paris", "Rome"), strict=True)
]
with open("promptfooconfig.json", "w") as file:
    json.dump({"prompts": ["{{said}}"], "providers": ["echo"], "tests": tests}, file)
# 100: a test did not pass.
done = subprocess.run(
    [*os.environ["PROMPTFOO"].split(), "eval", "-c", file.name, "-o", "results.json"], check=False
)
assert done.returncode in (0, 100)
