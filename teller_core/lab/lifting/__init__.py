"""Whether savings come true: what lifting a fault would save, predicted, beside what the same work took in healthy windows.

    pairs     a strike: what it cost its steps or requests, and what was predicted of that
    calm      healthy windows of other rounds, as what an engine is like when nothing is done to it
    requests  its requests, with batches made anew
    steps     its steps, by what their work costs
    profiled  its profiled steps, by replay
    told      its requests, as ``why`` says of a capture in which nobody knows what is healthy
    predict   all of it, for all lives
    figures   how far off the predictions are, by cause, and which causes are to make no claim
    telling   the same as an answer and as lines
    limited   what another limit of the scheduler would do, for ``lab rerun``

A prediction looks at the struck window and at healthy windows of other rounds; the truth is of the healthy windows of its own
round, where the same requests were sent at about the same time.
"""
