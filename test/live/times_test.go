package main

import (
	"strings"
	"testing"
)

// Two differences of 1 and 3 have mean 2 and standard error 1. Student's t with one degree of freedom is 12.706.
func TestInterval(t *testing.T) {
	for want, list := range map[string][]float64{"=+2.00±12.71": {1, 3}, "=-1.50": {-1.5}} {
		if got := interval(list); got != want {
			t.Errorf("%v: %s, want %s", list, got, want)
		}
	}
}

// The order of a claim holds if the interval of the differences by seed has only values on its side. One value has no interval.
func TestOrders(t *testing.T) {
	c := claim{rows: []string{"a", "b", "c"}, series: []series{
		{name: "x", values: [][]float64{{1, 1.1, 0.9}, {5, 5.1, 4.9}, {1, 9, 2}}}, {name: "y", values: [][]float64{{3, 3, 3}, {3, 3, 3}, {3, 3, 3}}}}}
	for _, high := range []bool{false, true} {
		c.high = high
		text, held := c.table()
		rows := []string{"| a | 1.00 ± 0.25 | 3.00 ± 0.00 | -2.00 ± 0.25 | as claimed |", "| b | 5.00 ± 0.25 | 3.00 ± 0.00 | +2.00 ± 0.25 | the other way round |", "not shown"}
		if high {
			rows[0], rows[1] = strings.Replace(rows[0], "as claimed", "the other way round", 1), strings.Replace(rows[1], "the other way round", "as claimed", 1)
		}
		for _, want := range rows {
			if held != 1 || !strings.Contains(text, want) {
				t.Errorf("%d rows hold; %q is not in\n%s", held, want, text)
			}
		}
	}
}

// The first model's answers end at 1, 2 and 5, the second's at 4 and 7. From 0 to 4, when the last answer of the first begins, the first is 2 ahead at the
// second 2, and the second has made up for it at 4.
func TestLag(t *testing.T) {
	arrivals := []arrival{{0, 0}, {0, 0}, {0, 0}, {0, 1}, {0, 1}}
	if got := lag([]float64{1, 2}, arrivals, []float64{1, 2, 5, 4, 7}); got != 2 {
		t.Errorf("got %v, want 2", got)
	}
	if got := lag([]float64{1, 2}, arrivals, []float64{1, 2, 3, 5, 7}); got != 2 {
		t.Errorf("the second model waits for its turn: got %v, want 2, as it is served no more once the first has nothing left", got)
	}
}
