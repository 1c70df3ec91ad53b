"""What an adversary gets from a release or an answer."""
