"""Several collectors: one query over the tables of many parties, who share only the noisy total."""
