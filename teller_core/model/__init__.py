"""The root-cause model: what it reads of a step or a request, the network, its training and what it says."""
