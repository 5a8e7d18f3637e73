"""An answer as one page of HTML that loads nothing: the verdict first, then what it rests on, ever finer."""
