import atexit

span = tracer.start_span("invoke_agent desk", attributes=TURN)
atexit.register(span.end)
