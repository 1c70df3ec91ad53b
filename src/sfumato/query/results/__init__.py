"""What an analyst sees: post-processing, intervals, EXPLAIN and workloads."""
