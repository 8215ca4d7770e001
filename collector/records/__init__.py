"""What each topic holds, and the signal that Spanwise publishes.

    topic     key                      value                                                  module
    spans     trace id, 16 bytes       an ExportTraceServiceRequest with spans of one trace   collector/otlp
    closings  trace id, 16 bytes       Mark                                                   closings
    traces    session key              TraceRecord | VerdictRecord | SessionRecord | RunRecord
                                       | WorkRecord                                              traces
    sessions  session key (+ trace)    SessionHead | SessionTurn | SessionAwaited  (compacted)    sessions
    signals   session id               the signal's JSON, CloudEvents headers                 signal
    windows   kind, what it is of      one kind each (log/state_table)             (compacted)    windows, drift, faults

Except for `spans` and `signals`, values are msgpack; where a topic has several kinds of records, a tag tells them
apart (codec). Fields and kinds are only ever added, each field with a default, so that processes of two versions can
share a log. A reader passes over kinds that its version does not know and counts them.
"""
