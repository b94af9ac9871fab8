// Package bench has the common parts of the project's measurements: the suite of workloads, and the way in which two
// things are measured against each other.
//
// In: the name of a workload. Out: the traces that an engine of that size would leave, and medians with their spread. Fails:
// if a trace cannot be written. The benchmarks themselves stand beside the code that they measure; test/bench/aims
// reads their output and compares it with the aims of docs/results/bench.md.
package bench
