package main

import "testing"

// Two differences of 1 and 3 have mean 2 and standard error 1. Student's t with one degree of freedom is 12.706.
func TestInterval(t *testing.T) {
	for want, list := range map[string][]float64{"=+2.00±12.71": {1, 3}, "=-1.50": {-1.5}} {
		if got := interval(list); got != want {
			t.Errorf("%v: %s, want %s", list, got, want)
		}
	}
}
