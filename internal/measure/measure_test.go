package measure

import "testing"

func TestTimes(t *testing.T) {
	times := Times{40, 10, 20, 30, 50}
	if times.Median() != 30 || times.Spread() != 20.0/30 {
		t.Errorf("median %d, spread %g", times.Median(), times.Spread())
	}
	median, spread := Ratios(Times{20, 30, 90}, Times{10, 10, 10})
	if median != 3 || spread != 3.5 {
		t.Errorf("ratio %g ± %g", median, spread)
	}
	if d := Difference(Times{20, 300, 90}, Times{10, 260, 30}); d != 40 {
		t.Errorf("difference %d", d)
	}
}
