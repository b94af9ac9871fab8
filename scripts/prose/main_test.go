package main

import (
	"slices"
	"strings"
	"testing"
)

func TestProse(t *testing.T) {
	for _, c := range []struct{ path, text, want string }{
		{"a.md", "If so, `where` is\nplain.\n\n    where code\n\nAfter it.\n```\nwhat\n```\nEnd", "If so, is plain. After it. End"},
		{"a.go", "// One.\nx := \"http://what\" // two\n/* three\n four */\n", "One. two three four"},
		{"a.c", "int x; /* if */\n// so\n", "if so"},
		{"a.py", "\"\"\"Doc.\"\"\"\nx = 1  # why\n", "Doc. why"},
	} {
		if got := strings.Join(strings.Fields(prose(c.path, c.text)), " "); got != c.want {
			t.Errorf("%s: %q, want %q", c.path, got, c.want)
		}
	}
}

func TestRates(t *testing.T) {
	counts := &tally{of: map[string]int{}}
	counts.add("If it fits, what is it? If not: where?")
	var got []int
	for _, w := range []string{"if", "what", "where", "who"} {
		got = append(got, counts.of[w])
	}
	if counts.words != 9 || !slices.Equal(got, []int{2, 1, 1, 0}) {
		t.Errorf("%d words, %v", counts.words, got)
	}
}

func TestSentences(t *testing.T) {
	all := sentencesOf("a.md", "# A heading\n\nThis is one that goes\nover two lines. Short one. `Code` begins this sentence here!\n| a table | row | with | words |\n")
	if len(all) != 2 || all[0].String() != "a.md: This is one that goes over two lines." || all[1].text != "`Code` begins this sentence here!" {
		t.Errorf("%q", all)
	}
	many := make([]sentence, 1000)
	for i := range many {
		many[i].text = strings.Repeat("x", i)
	}
	one, again, other := sample(many, 30, 7), sample(many, 30, 7), sample(many, 30, 8)
	if len(one) != 30 || !slices.Equal(one, again) || slices.Equal(one, other) {
		t.Error("the seed does not decide the places")
	}
	longer := make([]sentence, 2000)
	for i := range longer {
		longer[i].text = strings.Repeat("x", i)
	}
	for i, s := range sample(longer, 30, 7) {
		if d := len(s.text) - 2*len(one[i].text); d < 0 || d > 1 {
			t.Errorf("sentence %d is at %d of 2000, and at %d of 1000", i, len(s.text), len(one[i].text))
		}
	}
}
