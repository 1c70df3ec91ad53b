"""Stories that show what can go wrong with data about people, and what helps. ``tacit demo --list`` names them."""
