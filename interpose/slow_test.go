package interpose

import (
	"fmt"
	"os/exec"
	"path/filepath"
	"strconv"
	"testing"

	"medusa/interpose/trace"
)

// While its buffers have room, the recorder does not wait for the disk. When they are full, it waits for one of them only. The
// trace has the number of waits, and no record is lost. It syncs only at the end.
func TestSlowDisk(t *testing.T) {
	program := build(t, "build/test/slow")
	for _, test := range []struct {
		records int
		waits   bool
	}{{12_000, false}, {40_000, true}} {
		path := filepath.Join(t.TempDir(), "trace")
		out, err := exec.Command(program, path, strconv.Itoa(test.records)).CombinedOutput()
		if err != nil {
			t.Fatalf("%v\n%s", err, out)
		}
		var waits, syncs int
		if _, err := fmt.Sscan(string(out), &waits, &syncs); err != nil || waits > 0 != test.waits || syncs != 1 {
			t.Errorf("%d records of 1,000 bytes: waited %d times, synced %d times, %v", test.records, waits, syncs, err)
		}
		recs, err := trace.ReadAll(path)
		if err != nil {
			t.Fatal(err)
		}
		for i, c := range of[*trace.Content](recs) {
			if int(c.Alloc) != i || c.Data[0] != byte(i) || len(c.Data) != 1000 {
				t.Fatalf("record %d is of allocation %d, %d bytes", i, c.Alloc, len(c.Data))
			}
		}
		if n := len(of[*trace.Content](recs)); n != test.records {
			t.Errorf("%d records of %d", n, test.records)
		}
		waited := of[*trace.Waited](recs)
		if (len(waited) == 1 && int(waited[0].Count) == waits && waited[0].Ns > 0) != test.waits {
			t.Errorf("the trace says %v, the recorder waited %d times", waited, waits)
		}
	}
}
