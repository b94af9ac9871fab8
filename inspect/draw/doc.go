// Package draw pictures a graph: an SVG with a layered layout of its own, and DOT for other tools.
//
// In: inspect.Graph. Out: text that depends on nothing but the graph: equal graphs give equal bytes, and an SVG refers to
// nothing outside of itself. What can fail: writing.
//
// The layout is that of Sugiyama, Tagawa and Toda (IEEE Trans. SMC 11(2), 1981): nodes in layers by their longest path
// from a root, places within a layer by the means of their neighbours, edges over several layers through a place in each.
// A captured decode step is a chain of hundreds of nodes, so layers are then broken into columns like lines of text.
package draw
