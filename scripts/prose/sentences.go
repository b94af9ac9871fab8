package main

import (
	"fmt"
	"math/rand/v2"
	"regexp"
	"strings"
)

// end is the end of a sentence: its last mark and the blank before a capital letter or a quotation.
var end = regexp.MustCompile("([.!?:])\\s+([A-Z`\"*])")

// sentence is one with its file.
type sentence struct{ path, text string }

// sentencesOf splits the prose of a file. It leaves out tables, headings, and texts too short or too long for one sentence.
func sentencesOf(path, text string) []sentence {
	var kept []string
	for line := range strings.Lines(text) {
		if line = strings.TrimSpace(line); !strings.HasPrefix(line, "|") && !strings.HasPrefix(line, "#") {
			kept = append(kept, line)
		}
	}
	var out []sentence
	for _, s := range strings.Split(end.ReplaceAllString(strings.Join(kept, " "), "$1\n$2"), "\n") {
		if words := strings.Fields(s); len(words) >= 5 && len(words) <= 60 {
			out = append(out, sentence{path, strings.Join(words, " ")})
		}
	}
	return out
}

// sample returns n sentences at places that the seed decides, as fractions of the whole. So the same seed looks at about the same
// places of another version.
func sample(all []sentence, n int, seed uint64) []sentence {
	source := rand.New(rand.NewPCG(seed, seed))
	out := make([]sentence, 0, n)
	for range min(n, len(all)) {
		out = append(out, all[int(source.Float64()*float64(len(all)))])
	}
	return out
}

func (s sentence) String() string { return fmt.Sprintf("%s: %s", s.path, s.text) }
