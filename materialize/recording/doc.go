// Package recording reads the trace of one start.
//
// In: a trace file of interpose. Out: a Recording with memory, modules, marks and graphs in the order in which they came; the
// nodes of graphs by a Walk, one graph at a time; images and saved bytes on demand. The package derives no facts, and a Recording
// does not change after Read. Fails: a trace that is damaged, or whose claims no driver could cause (*Error).
//
// A trace may be made up. Reading takes time and memory in proportion to it; traces that would take more are refused: memory that wraps around,
// a graph that embeds itself or that two nodes embed, and graphs embedded in each other more than 64 times (graphir.MaxNesting).
package recording
