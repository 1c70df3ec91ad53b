"""Stories that show what can go wrong with data about people, and what helps. ``sfumato demo --list`` names them."""
