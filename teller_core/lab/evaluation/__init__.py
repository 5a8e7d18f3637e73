"""How good methods are: every method under one table of figures, on captures whose truth the method does not see."""
