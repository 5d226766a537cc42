"""Collections, workloads, reference loops and stored results that several benchmarks use."""
