"""The policy of differential privacy; all other answering policies are in :mod:`sfumato.auditing.policies`."""
