package draw

import (
	"cmp"
	"slices"
)

// vertex is a node of the graph, or the place at which an edge crosses a layer.
type vertex struct {
	node     int // -1 if an edge only passes here
	layer    int
	x        float64 // centre
	up, down []int   // neighbours in the previous and the next layer
}

// layered is a graph whose edges all lead from one layer to the next.
type layered struct {
	vertices []vertex
	layers   [][]int // vertices from left to right
	paths    [][]int // per edge: its vertices from start to end
}

// newLayered puts n nodes in layers by longest path. The edges have no cycle (graphir checks that).
func newLayered(n int, edges [][2]int) *layered {
	l := &layered{vertices: make([]vertex, n), paths: make([][]int, len(edges))}
	depth, after, waits := make([]int, n), make([][]int, n), make([]int, n)
	for _, e := range edges {
		after[e[0]] = append(after[e[0]], e[1])
		waits[e[1]]++
	}
	var ready []int
	for v := range n {
		if waits[v] == 0 {
			ready = append(ready, v)
		}
	}
	for ; len(ready) > 0; ready = ready[1:] {
		for _, to := range after[ready[0]] {
			depth[to] = max(depth[to], depth[ready[0]]+1)
			if waits[to]--; waits[to] == 0 {
				ready = append(ready, to)
			}
		}
	}
	for v := range n {
		l.vertices[v] = vertex{node: v, layer: depth[v]}
		l.place(v)
	}
	for i, e := range edges {
		path := []int{e[0]}
		for d := depth[e[0]] + 1; d < depth[e[1]]; d++ {
			l.vertices = append(l.vertices, vertex{node: -1, layer: d})
			path = append(path, len(l.vertices)-1)
			l.place(len(l.vertices) - 1)
		}
		path = append(path, e[1])
		for k := 1; k < len(path); k++ {
			l.vertices[path[k-1]].down = append(l.vertices[path[k-1]].down, path[k])
			l.vertices[path[k]].up = append(l.vertices[path[k]].up, path[k-1])
		}
		l.paths[i] = path
	}
	return l
}

func (l *layered) place(v int) {
	d := l.vertices[v].layer
	for len(l.layers) <= d {
		l.layers = append(l.layers, nil)
	}
	l.layers[d] = append(l.layers[d], v)
}

// order reduces crossings: it sorts each layer by the mean position of its neighbours, down and up again. Graphs of engines are
// narrow, so a few rounds suffice.
func (l *layered) order() {
	position := make([]float64, len(l.vertices))
	settle := func(layer []int) {
		for i, v := range layer {
			position[v] = float64(i)
		}
	}
	for _, layer := range l.layers {
		settle(layer)
	}
	sweep := func(layer []int, neighbours func(*vertex) []int) {
		mean := map[int]float64{}
		for _, v := range layer {
			mean[v] = average(neighbours(&l.vertices[v]), position, position[v])
		}
		slices.SortStableFunc(layer, func(a, b int) int { return cmp.Compare(mean[a], mean[b]) })
		settle(layer)
	}
	for range 4 {
		for _, layer := range l.layers {
			sweep(layer, func(v *vertex) []int { return v.up })
		}
		for i := len(l.layers) - 1; i >= 0; i-- {
			sweep(l.layers[i], func(v *vertex) []int { return v.down })
		}
	}
}

func average(of []int, values []float64, otherwise float64) float64 {
	if len(of) == 0 {
		return otherwise
	}
	sum := 0.0
	for _, v := range of {
		sum += values[v]
	}
	return sum / float64(len(of))
}

// spread sets the x of every vertex as close to the mean of its neighbours as the layer's order and gaps allow.
func (l *layered) spread(width func(v int) float64) {
	x := make([]float64, len(l.vertices))
	for _, layer := range l.layers {
		at := 0.0
		for _, v := range layer {
			x[v] = at + width(v)/2
			at += width(v)
		}
		for _, v := range layer {
			x[v] -= at / 2
		}
	}
	settle := func(layer []int, neighbours func(*vertex) []int) {
		want := make([]float64, len(layer))
		for i, v := range layer {
			want[i] = average(neighbours(&l.vertices[v]), x, x[v])
		}
		gaps := make([]float64, len(layer))
		for i := 1; i < len(layer); i++ {
			gaps[i] = (width(layer[i-1]) + width(layer[i])) / 2
		}
		for i, at := range nearest(want, gaps) {
			x[layer[i]] = at
		}
	}
	for range 4 {
		for _, layer := range l.layers {
			settle(layer, func(v *vertex) []int { return v.up })
		}
		for i := len(l.layers) - 1; i >= 0; i-- {
			settle(l.layers[i], func(v *vertex) []int { return v.down })
		}
	}
	for i := range l.vertices {
		l.vertices[i].x = x[i]
	}
}

// nearest returns positions that keep at least the given gap to the previous one and minimize the sum of squared distances from
// the wanted positions: isotonic regression by pooling adjacent violators.
func nearest(want, gaps []float64) []float64 {
	type pool struct {
		sum   float64
		count int
	}
	var pools []pool
	shift := make([]float64, len(want)) // sums of the gaps
	for i, w := range want {
		if i > 0 {
			shift[i] = shift[i-1] + gaps[i]
		}
		pools = append(pools, pool{w - shift[i], 1})
		for n := len(pools); n > 1; n-- {
			a, b := &pools[n-2], pools[n-1]
			if a.sum/float64(a.count) <= b.sum/float64(b.count) {
				break
			}
			a.sum, a.count = a.sum+b.sum, a.count+b.count
			pools = pools[:n-1]
		}
	}
	out, i := make([]float64, len(want)), 0
	for _, p := range pools {
		for range p.count {
			out[i] = p.sum/float64(p.count) + shift[i]
			i++
		}
	}
	return out
}
