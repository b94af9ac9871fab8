package main

import (
	"fmt"
	"math"
	"strings"
)

// spread is the mean of a list and the half width of its 95 % interval; 0 for one value.
func spread(list []float64) (mean, half float64) {
	squares := 0.0
	for _, x := range list {
		mean += x / float64(len(list))
	}
	for _, x := range list {
		squares += (x - mean) * (x - mean)
	}
	if len(list) < 2 {
		return mean, 0
	}
	n := float64(len(list))
	return mean, student[min(len(list)-1, len(student))-1] * math.Sqrt(squares/(n-1)/n)
}

// table is the section of a claim, and the number of rows in which the claimed order holds for the means.
func (c *claim) table() (text string, held int) {
	var out strings.Builder
	fmt.Fprintf(&out, "## %s\n\n%s\n\n![%s](%s.svg)\n\n| |", c.title, c.text, c.title, c.file)
	for _, s := range c.series {
		fmt.Fprintf(&out, " %s (%s) |", s.name, c.unit)
	}
	fmt.Fprintf(&out, " difference, by seed | order |\n|---|%s---:|---|\n", strings.Repeat("---:|", len(c.series)))
	for row, name := range c.rows {
		fmt.Fprintf(&out, "| %s |", name)
		for _, s := range c.series {
			mean, half := spread(s.values[row])
			fmt.Fprintf(&out, " %.2f ± %.2f |", mean, half)
		}
		apart := make([]float64, len(c.series[0].values[row]))
		for i := range apart {
			apart[i] = c.series[0].values[row][i] - c.series[1].values[row][i]
		}
		mean, half := spread(apart)
		verdict := "not shown: the interval contains 0"
		switch gain := (mean > 0) == c.high; {
		case math.Abs(mean) > half && gain:
			verdict = "as claimed"
		case math.Abs(mean) > half:
			verdict = "the other way round"
		}
		if verdict == "as claimed" {
			held++
		}
		fmt.Fprintf(&out, " %+.2f ± %.2f | %s |\n", mean, half, verdict)
	}
	return out.String() + "\n", held
}

// svg draws bars with intervals.
func (c *claim) svg() string {
	const width, height, left, bottom, top = 640, 300, 60, 40, 50
	colors := []string{"#2b6cb0", "#c05621"}
	most := 0.0
	for _, s := range c.series {
		for _, v := range s.values {
			mean, half := spread(v)
			most = max(most, mean+half)
		}
	}
	y := func(v float64) float64 { return height - bottom - v/most*(height-bottom-top) }
	var out strings.Builder
	fmt.Fprintf(&out, `<svg xmlns="http://www.w3.org/2000/svg" viewBox="0 0 %d %d" font-family="sans-serif" font-size="12">`+"\n", width, height)
	fmt.Fprintf(&out, `<rect width="%d" height="%d" fill="#fff"/><text x="%d" y="18" font-size="14">%s (%s)</text>`+"\n", width, height, left, c.title, c.unit)
	for i := range 5 {
		v := most * float64(i) / 4
		fmt.Fprintf(&out, `<line x1="%d" x2="%d" y1="%.1f" y2="%.1[3]f" stroke="#ddd"/><text x="%d" y="%.1f" text-anchor="end">%.2f</text>`+"\n", left, width-10, y(v), left-6, y(v)+4, v)
	}
	group := float64(width-left-10) / float64(len(c.rows))
	bar := group / float64(len(c.series)+1)
	for s, x := range c.series {
		fmt.Fprintf(&out, `<rect x="%d" y="28" width="10" height="10" fill="%s"/><text x="%d" y="37">%s</text>`+"\n", left+140*s, colors[s], left+140*s+14, x.name)
		for row, v := range x.values {
			mean, half := spread(v)
			at := left + group*float64(row) + bar*(float64(s)+0.5)
			fmt.Fprintf(&out, `<rect x="%.1f" y="%.1f" width="%.1f" height="%.1f" fill="%s"/>`, at, y(mean), bar-2, y(0)-y(mean), colors[s])
			fmt.Fprintf(&out, `<line x1="%.1f" x2="%.1[1]f" y1="%.1f" y2="%.1f" stroke="#000"/>`+"\n", at+bar/2-1, y(max(0, mean-half)), y(mean+half))
		}
	}
	for row, name := range c.rows {
		fmt.Fprintf(&out, `<text x="%.1f" y="%d" text-anchor="middle">%s</text>`+"\n", left+group*(float64(row)+0.5), height-bottom+18, name)
	}
	return out.String() + "</svg>\n"
}
