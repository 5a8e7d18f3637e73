"""Words that cannot lie: a grammar of claims over the facts of an answer, its automaton, and the check of what was said."""
