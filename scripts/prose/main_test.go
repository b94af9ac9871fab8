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
