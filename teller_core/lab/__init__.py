"""Workloads, real faults and the benchmark.

What is served, and what clients send:

    model, words       small models with random weights, and made-up prompts
    mixes, requests    which requests come, and what a fault makes of them
    load               they are sent, and what clients measure is written down
    serving, nodes     a real engine under the recorder, on one machine or on two namespaces; ``link`` and ``spaces`` lie between

What is done to it:

    injectors          the table of what can be done (injectors.toml), each with its one cause
    outside, inside    from outside, and by hook points that ``inject/`` puts into the service
    striking           one injector for as long as a block of code lasts
    profiling          a few steps of a window under the profiler

What comes of that:

    blocks             windows, strikes, blocks: the plan of a life and the shape of its truth
    effect             by how much a window was slower than its twins
    life               ``lab run``: one life of a server, and its truth
    benchmark/         ``lab build``: many lives, packed, cut into episodes, labeled
    evaluation/        ``lab eval``: methods judged on these episodes
    probe/             ``lab leaks``: whether anything but the fault gives it away; ``giveaways`` looks for words that do
    counterfactual     ``lab rerun``: one service under two limits, in turns
    savings            what each request would have saved without a fault: ``lab lifted`` of one life
    lifting/           whether predicted savings come true: ``lab lifted`` of all lives
    perturb/           ``lab replayed``: faults put into real recordings by replay
    teaching           ``lab sheets``: what the root-cause model learns from; ``vocabularies`` in several codings
    telling            what ``lab run`` answers; ``telling_savings`` what ``rerun`` and ``lifted`` do
    side_by_side       work of all of these, shared out to forks

The demo is one short life without twins: ``plan``, ``demo``, ``truth``, and the ``conversation`` about it.
"""
