package simulate

import (
	"math/rand/v2"
	"path/filepath"
	"strings"
	"testing"
)

// mutate damages a text in the ways of careless editing and bad disks.
func mutate(rng *rand.Rand, text string) string {
	const special = "{}[]:,&*-\"' \n\t!|>#%@`0123456789eE.\x00\xff"
	b := []byte(text)
	for range 1 + rng.IntN(4) {
		at := rng.IntN(len(b))
		switch rng.IntN(4) {
		case 0:
			b[at] = byte(rng.IntN(256))
		case 1:
			b = append(b[:at], b[min(len(b), at+1+rng.IntN(20)):]...)
		case 2:
			b = append(b[:at:at], append([]byte{special[rng.IntN(len(special))]}, b[at:]...)...)
		case 3:
			from := rng.IntN(len(b))
			b = append(b[:at:at], append([]byte(string(b[from:min(len(b), from+1+rng.IntN(40))])), b[at:]...)...)
		}
		if len(b) == 0 {
			return ""
		}
	}
	return string(b)
}

// TestDamagedFiles: a damaged file is read, or gives an error with line and column. The fuzz targets go further from the
// seeds; this test covers their surroundings on every run.
func TestDamagedFiles(t *testing.T) {
	path := withFiles(t, testScenario)
	traces := []string{
		"arrival_s,function,prompt_tokens,output_tokens\n0.5,a,100,20\n1.5,\"b\",7,3\n",
		"TIMESTAMP,ContextTokens,GeneratedTokens\n2023-11-16 18:15:46.6805900,100,20\n",
		"{\"timestamp\": 3000, \"input_length\": 100, \"output_length\": 20}\n{\"timestamp\": 4000, \"input_length\": 1, \"output_length\": 2}\n",
	}
	rng := rand.New(rand.NewPCG(1, 4))
	failed := 0
	check := func(err error) {
		if err != nil {
			failed++
			requirePosition(t, err)
		}
	}
	for i := range 1500 {
		text := mutate(rng, testScenario)
		// A damaged path may name any file. This test does not check whether that exists.
		if strings.Contains(text, "profiles: p.yaml\n") && !strings.Contains(text, "file") {
			_, err := parseScenario(path, []byte(text))
			check(err)
		}
		_, err := parseProfiles(filepath.Join(filepath.Dir(path), "p.yaml"), []byte(mutate(rng, testProfiles)))
		check(err)
		_, err = parseTrace("t", strings.NewReader(mutate(rng, traces[i%len(traces)])))
		check(err)
		_, err = parseTable("t", strings.NewReader(mutate(rng, "f,m0,m1\na,1,2\nb,3,4\n")))
		check(err)
		if t.Failed() {
			t.Fatalf("scenario: %q", text)
		}
	}
	if failed < 1000 {
		t.Errorf("only %d of the damaged files are refused", failed)
	}
}
