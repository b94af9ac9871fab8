package compile

import "testing"

// Memory far away from a word is no neighbour.
func TestNeighboursAreNear(t *testing.T) {
	tp := newTape(1)
	tp.alloc(0x7f0000000000, 4096)
	tp.alloc(0x7f0000010000, 4096)
	live, err := own(tp.recording(t)).liveAt(5)
	if err != nil {
		t.Fatal(err)
	}
	for _, row := range []struct {
		word uint64
		want []int64 // distances
	}{
		{5, nil},
		{0, nil},
		{^uint64(0), nil},
		{0x7f0000000008, []int64{8, 8 - 0x10000}},
		{0x7eff_ffff_fff8, []int64{-8}},
		{0x7f0000011000, []int64{0x1000}},
		{0x7f0000010000 + 4096 + nearby, nil},
	} {
		var got []int64
		for _, n := range live.near(row.word) {
			got = append(got, n.Distance)
		}
		if len(got) != len(row.want) {
			t.Errorf("%#x: distances %v, want %v", row.word, got, row.want)
			continue
		}
		for i := range got {
			if got[i] != row.want[i] {
				t.Errorf("%#x: distances %v, want %v", row.word, got, row.want)
			}
		}
	}
}
