"""How good methods are: every method under one table of figures, on captures whose truth the method does not see.

episode, seen   a capture with its truth, and what a method is shown of it
loading         episodes of packed lives: the one place that knows the benchmark's shape and ours
method          what a method is, and what it says; ``methods/`` has them, one file each
scoring         a score a step made a whole method, with ``cause_map`` from steps to causes
training        rows to learn from; ``learners`` with scikit-learn
tuning          options, chosen on the training side
running         one method from training to figures
rows            what was said beside what is true, as columns
metrics         the figures (``figure`` is one), ``step_figures`` those of steps; ``causes``, ``detection``, ``ranking``,
                ``calibration`` compute, ``bootstrap`` draws lives again
paired          two methods on the same draws of lives
tables          one method and tier as text; ``summary`` all of them; ``ratchet`` what must not fall
results         ``lab eval``: all of it, to files; ``unshipped``: of weights that do not ship, to nobody's files
density, operator_times, step_features, paper_candidates, paper_slice: what methods share or are made of
"""
