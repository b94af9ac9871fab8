package draw

import "math"

// Sizes in the picture's units.
const (
	boxWidth, boxHeight = 208.0, 36.0
	passWidth           = 24.0 // for an edge that passes a layer
	nodeGap             = 16.0
	layerGap            = 22.0
	columnGap           = 72.0
	margin              = 28.0
	laneGap             = 7.0
)

type point struct{ x, y float64 }

// layout has the positions of everything. Boxes are given by their centres.
type layout struct {
	width, height float64
	boxes         []point
	edges         [][]point // polylines, from the bottom of a box to the top of another
}

// arrange lays out n nodes, given edges without a cycle.
func arrange(n int, edges [][2]int) *layout {
	l := newLayered(n, edges)
	l.order()
	l.spread(func(v int) float64 {
		if l.vertices[v].node < 0 {
			return passWidth
		}
		return boxWidth + nodeGap
	})
	columns := l.columns()
	out := &layout{boxes: make([]point, n), edges: make([][]point, len(edges))}
	at := make([]point, len(l.vertices))
	left := margin
	gutter := make([]float64, len(columns)) // right of each column
	columnOf := make([]int, len(l.layers))
	for c, layers := range columns {
		low, high := l.extent(layers)
		for row, d := range layers {
			columnOf[d] = c
			for _, v := range l.layers[d] {
				at[v] = point{left + l.vertices[v].x - low, margin + boxHeight/2 + float64(row)*(boxHeight+layerGap)}
			}
		}
		out.height = max(out.height, 2*margin+float64(len(layers))*(boxHeight+layerGap)-layerGap)
		left += high - low
		gutter[c] = left
		left += columnGap
	}
	out.width = left - columnGap + margin
	for v := range l.vertices {
		if node := l.vertices[v].node; node >= 0 {
			out.boxes[node] = at[v]
		}
	}
	lanes := make([]int, len(columns))
	for i, path := range l.paths {
		var line []point
		for k, v := range path {
			p := at[v]
			if k > 0 {
				before := path[k-1]
				if c := columnOf[l.vertices[before].layer]; c != columnOf[l.vertices[v].layer] {
					// Down, sideways into the gutter, up, and in from above.
					lane := gutter[c] + columnGap/2 + laneGap*offset(lanes[c])
					low := at[before].y + boxHeight/2 + layerGap/2
					line = append(line, point{at[before].x, low}, point{lane, low}, point{lane, p.y - boxHeight/2 - layerGap/2},
						point{p.x, p.y - boxHeight/2 - layerGap/2})
					lanes[c]++
				}
			}
			switch {
			case k == 0:
				line = append(line, point{p.x, p.y + boxHeight/2})
			case k == len(path)-1:
				line = append(line, point{p.x, p.y - boxHeight/2})
			default:
				line = append(line, point{p.x, p.y - boxHeight/2}, point{p.x, p.y + boxHeight/2})
			}
		}
		out.edges[i] = line
	}
	return out
}

// offset spreads lanes around a gutter's middle: 0, 1, -1, 2, -2, 3, -3, and again.
func offset(lane int) float64 {
	lane %= 7
	if lane%2 == 1 {
		return float64(lane+1) / 2
	}
	return -float64(lane) / 2
}

// columns breaks the layers into columns so that the picture is about half as high again as a screen is wide; the rest scrolls in
// one direction. It prefers breaks that few edges cross.
func (l *layered) columns() [][]int {
	all := make([]int, len(l.layers))
	for d := range l.layers {
		all[d] = d
	}
	if len(all) == 0 {
		return nil
	}
	low, high := l.extent(all)
	aspect := (high - low + columnGap) / (boxHeight + layerGap)
	rows := max(12, int(math.Ceil(math.Sqrt(float64(len(all))*aspect*0.7))))
	var out [][]int
	for start := 0; start < len(all); {
		stop := min(start+rows, len(all))
		if stop < len(all) {
			best := stop
			for d := stop; d > stop-rows/4 && d > start+1; d-- {
				if l.crossing(d) < l.crossing(best) {
					best = d
				}
			}
			stop = best
		}
		out = append(out, all[start:stop])
		start = stop
	}
	return out
}

// crossing counts the edges into layer d.
func (l *layered) crossing(d int) int {
	n := 0
	for _, v := range l.layers[d] {
		n += len(l.vertices[v].up)
	}
	return n
}

// extent returns the leftmost and the rightmost x of some layers, boxes included.
func (l *layered) extent(layers []int) (low, high float64) {
	low, high = math.Inf(1), math.Inf(-1)
	for _, d := range layers {
		for _, v := range l.layers[d] {
			half := passWidth / 2
			if l.vertices[v].node >= 0 {
				half = boxWidth / 2
			}
			low, high = min(low, l.vertices[v].x-half), max(high, l.vertices[v].x+half)
		}
	}
	return low, high
}
