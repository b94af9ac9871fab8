package interpose

import (
	"slices"
	"testing"

	"medusa/interpose/trace"
)

// A trace names each device on which the process has memory.
func TestDevices(t *testing.T) {
	t.Setenv("SIMGPU_DEVICES", "2")
	program := build(t, "build/test/devices")
	for _, tt := range []struct {
		args []string
		want []uint32
	}{
		{nil, []uint32{0}},
		{[]string{"context"}, []uint32{0, 1}},
		{[]string{"properties"}, []uint32{0, 1}},
	} {
		recs, _ := record(t, Config{}, 0, simulated(t), append([]string{program}, tt.args...)...)
		var got []uint32
		for _, d := range of[*trace.Device](recs) {
			got = append(got, d.Ordinal)
		}
		if !slices.Equal(got, tt.want) {
			t.Errorf("%q: devices %d, not %d", tt.args, got, tt.want)
		}
	}
}
