"""Growth by several processes, each of which holds some of the rows."""
