"""The posterior of an adversary who multiplies all evidence, with different rows for different people."""
