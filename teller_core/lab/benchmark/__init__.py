"""The benchmark: lives of servers, recorded, packed, cut into episodes, and the truth about each beside it.

lives      which lives there are: what serves, under which load, what is done, on which side
build      those that are missing are recorded and packed
tiers      what of a recording there would be at each tier
pack       a life as one small file; ``columnar`` its bytes, ``clean`` what it must not hold
chosen     windows of a life
cut        the part of a capture that lies in some windows; ``cut_trees`` of its spans
labels     what is true of each request and step of such a part; ``twins`` where no injector tells
episodes   all of it: a capture, and its truth (the evaluation has both in a shape of its own: ``evaluation/loading``)
telling    what ``lab build`` answers
"""
