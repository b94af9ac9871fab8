package check

import "testing"

// After a sleep, graphs compute the same results and keep the same contents as before. With other weights the results differ, and
// only the engine can allow that.
func TestSamplesAreCompared(t *testing.T) {
	before := Sample{map[string]string{"one": "a", "two": "b"}, "weights", "memory"}
	for name, row := range map[string]struct {
		after Sample
		same  bool
		good  bool
	}{
		"as before":                  {Sample{map[string]string{"one": "a", "two": "b"}, "weights", "memory"}, true, true},
		"another result":             {Sample{map[string]string{"one": "a", "two": "c"}, "weights", "memory"}, true, false},
		"no result":                  {Sample{map[string]string{"one": "a"}, "weights", "memory"}, false, false},
		"other weights":              {Sample{map[string]string{"one": "d", "two": "e"}, "others", "memory"}, false, true},
		"other weights, unwanted":    {Sample{map[string]string{"one": "a", "two": "b"}, "others", "memory"}, true, false},
		"other weights, memory lost": {Sample{map[string]string{"one": "d", "two": "e"}, "others", "lost"}, false, false},
	} {
		if err := row.after.Compare(&before, row.same); (err == nil) != row.good {
			t.Errorf("%s: %v", name, err)
		}
	}
}
