"""Synthetic faults on real recordings: steps that were recorded once, replayed with other durations, some of them struck.

recordings    which recordings, and on which side each stands
pieces        a few steps of one, ready to be replayed
benign        what the same steps might as well have taken
faults        what can be done: ``stretching`` what was there, ``adding`` calls; ``blows`` is what both work with
altering      a piece with calls that were never made; ``inserting`` puts their rows into a tree
runs          one run of a piece
assembling    runs as one capture, as a recorder would have left it; ``meeting`` how its ranks met
episodes      runs, some of them struck, and what is true of each
folder        ``lab replayed``: thousands of them, made again from seeds
judging       ``lab eval --replayed`` and ``lab leaks --replayed``
telling_apart whether anything but the fault tells what was struck, or replayed
"""
