"""Local differential privacy: protocols for frequencies and numbers, surveys, and attacks on them."""
