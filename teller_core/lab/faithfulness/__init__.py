"""Whether an answer rests on what it cites: that is taken out of the capture, and the request is asked about again."""
