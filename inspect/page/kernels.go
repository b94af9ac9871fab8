package page

import (
	"cmp"
	"slices"
	"strconv"
	"strings"

	"medusa/inspect"
	"medusa/inspect/draw"
)

// kernels lists the kernels by the number of their nodes.
type kernels struct {
	Top  []kernelBar
	Rest []kernelBar
}

type kernelBar struct {
	inspect.Kernel
	Short string
	Share float64 // relative to the most frequent kernel's nodes
}

const topKernels = 14

func newKernels(list inspect.Kernels) kernels {
	slices.SortStableFunc(list, func(a, b inspect.Kernel) int { return cmp.Compare(b.Nodes, a.Nodes) })
	var out kernels
	for i, k := range list {
		bar := kernelBar{Kernel: k, Short: draw.ShortName(k.Name), Share: float64(k.Nodes) / float64(max(1, list[0].Nodes))}
		if i < topKernels {
			out.Top = append(out.Top, bar)
		} else {
			out.Rest = append(out.Rest, bar)
		}
	}
	return out
}

// graphs shows the sizes of graphs by batch.
type graphs struct {
	Bars  []graphBar
	Scale []tick
	Most  int // nodes
}

type graphBar struct {
	inspect.GraphSize
	X, W, Y, H float64
	Tick       string
}

func newGraphs(list []inspect.GraphSize) graphs {
	slices.SortStableFunc(list, func(a, b inspect.GraphSize) int {
		return cmp.Or(cmp.Compare(a.Batch, b.Batch), strings.Compare(a.Label, b.Label))
	})
	var out graphs
	for _, g := range list {
		out.Most = max(out.Most, g.Nodes)
	}
	if out.Most == 0 {
		return out
	}
	step := max(1, round(float64(out.Most)/4))
	top := max(float64(out.Most), 1)
	for v := step; v <= top; v += step {
		out.Scale = append(out.Scale, tick{chartHeight * (1 - v/top), strconv.Itoa(int(v))})
	}
	w := chartWidth / float64(len(list))
	every := (len(list) + 17) / 18
	for i, g := range list {
		h := chartHeight * float64(g.Nodes) / top
		bar := graphBar{GraphSize: g, X: w*float64(i) + w*0.1, W: min(w*0.8, 40), Y: chartHeight - h, H: h}
		if i%every == 0 {
			bar.Tick = strconv.Itoa(int(g.Batch))
		}
		out.Bars = append(out.Bars, bar)
	}
	return out
}

// Middle is the position of the bar's label.
func (b graphBar) Middle() float64 { return b.X + b.W/2 }

// ParamBytesU converts ParamBytes for the template function "bytes".
func (b graphBar) ParamBytesU() uint64 { return uint64(b.ParamBytes) }
