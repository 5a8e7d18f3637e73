"""The paper on one page: what happens to a capture, from its files to an answer.

    read      files -> recordings: traces, log lines, records                   ingest
    nest      trace -> call-chain tree                                          rebuild
    rebuild   recording + trees -> capture: ranks, steps, requests, log lines   rebuild
    assess    capture -> baselines, residuals, candidates                       judge
    diagnose  capture + numbers + request -> verdict with evidence              judge
    explain   verdict -> words, every name and number from its evidence         tell
    keep      all of it -> store                                                store

A stage is swapped with ``replace(STAGES, assess=mine)``.
"""
