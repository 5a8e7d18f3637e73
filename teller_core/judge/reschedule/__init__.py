"""What a request would have gained had some steps been shorter, given that the engine then batches anew.

    batches    capture -> what each step of an engine really computed, for whom, and when it was decided and done
    evictions  where requests came back after an eviction, and what of their texts was still cached
    arrivals   when each request reached the scheduler, as far as that was recorded
    handover   those that were on their way to the scheduler when it decided
    limits     what the batches say of the scheduler: its order, token budget, sequence limit and KV blocks
    scheduler  one decision: who computes how many tokens in the next step
    snapshot   the scheduler as it was before a recorded decision
    costs      what a step of some work takes here, learned from these very steps
    background what the steps met besides their work
    simulate   decision after decision from any recorded one on
    check      whether all of this reproduces the capture; else no claim is made from it
    savings    how much sooner a request would have ended, with the recorded batches and with new ones
    plan       the engines of a capture made ready for all of this, and what may be claimed of them
    findings   what a finding says of it
    neighbors  who slowed a request down, and whom it slowed down

Nothing here looks at spans: steps, requests and who took part in which step suffice.
"""
