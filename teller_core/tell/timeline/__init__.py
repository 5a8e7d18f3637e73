"""What is drawn of a request and of a step: rows of marks, as many as can be told apart and no more."""
