// Package draw draws a graph: as SVG with a layered layout, and as DOT for other tools.
//
// In: inspect.Graph. Out: text that depends on the graph alone. Equal graphs give equal bytes, and an SVG refers to no other
// file. Fails: writing.
//
// The layout follows Sugiyama, Tagawa and Toda (IEEE Trans. SMC 11(2), 1981). It puts nodes in layers by their longest path from
// a root, places them within a layer at the mean of their neighbours, and routes an edge over several layers through a place in
// each. A captured decode step is a chain of hundreds of nodes, so layers are then broken into columns like lines of text.
package draw
