package promises

import (
	"encoding/json"
	"fmt"
	"maps"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"medusa/test/testenv"
)

// tokens is a file that make test-tokens leaves for a release of vLLM (runners/vllm/tokens/run.py).
type tokens struct {
	Versions map[string]string
	Cases    map[string]struct {
		Date, Commit, Reference                                        string
		Tokens, Identical, Captures, Distinct, Graphs, Nodes, Pointers int
		Changed                                                        map[string]*int
		Refused                                                        map[string]string
		Minutes                                                        float64
	}
}

// mistakes are the negative controls of a case, in the order of the page's columns. Only engines of several ranks have those from collective on.
var mistakes = []string{"kernel", "pointer", "content", "key", "metadata", "hole", "holes"}

const collective = 5

// tokensTables renders the results: the numbers of each case, the tokens that each mistake changed, and whether
// materialize refused it.
func tokensTables(r tokens) string {
	var page strings.Builder
	fmt.Fprintf(&page, "device %s, vllm %s.\n", r.Versions["device"], r.Versions["vllm"])
	page.WriteString("\n| case | date | commit | held against transformers, or what requests met | tokens | equal to native | captures | different tokens | graphs | nodes | pointers | minutes |\n|---|---|---|---|---:|---:|---:|---:|---:|---:|---:|---:|\n")
	names := slices.Sorted(maps.Keys(r.Cases))
	for _, name := range names {
		c := r.Cases[name]
		fmt.Fprintf(&page, "| %s | %s | %s | %s | %d | %d | %d | %d | %d | %d | %d | %.0f |\n", name, c.Date, c.Commit, c.Reference, c.Tokens, c.Identical, c.Captures, c.Distinct, c.Graphs, c.Nodes, c.Pointers, c.Minutes)
	}
	fmt.Fprintf(&page, "\n| tokens that a mistake changes; ✓: materialize refuses it | %s |\n|---%s|\n", strings.Join(mistakes, " | "), strings.Repeat("|---:", len(mistakes)))
	for _, name := range names {
		c := r.Cases[name]
		if len(c.Changed) == 0 {
			continue
		}
		fmt.Fprintf(&page, "| %s |", name)
		for i, m := range mistakes {
			n, made := c.Changed[m]
			switch {
			case !made && i >= collective:
				page.WriteString(" |")
			case !made:
				page.WriteString(" not run |")
			case n == nil:
				page.WriteString(" no place |")
			case c.Refused[m] == "":
				fmt.Fprintf(&page, " %d |", *n)
			default:
				fmt.Fprintf(&page, " %d ✓ |", *n)
			}
		}
		page.WriteString("\n")
	}
	return page.String()
}

func tokensOf(t *testing.T, file string) (r tokens) {
	t.Helper()
	data, err := os.ReadFile(file)
	if err != nil {
		t.Fatal(err)
	}
	if err := json.Unmarshal(data, &r); err != nil || len(r.Cases) == 0 {
		t.Fatal(file, err, len(r.Cases))
	}
	return r
}

func checkTokens(t *testing.T, r tokens) {
	t.Helper()
	for name, c := range r.Cases {
		if c.Tokens == 0 || c.Identical != c.Tokens || c.Captures != 0 || c.Distinct < 32 {
			t.Errorf("%s is no result that make test-tokens would call a success: %+v", name, c)
		}
		for mistake, n := range c.Changed {
			if n != nil && (*n == 0 || c.Refused[mistake] == "") {
				t.Errorf("%s: the mistake %s changed %d tokens, and materialize refused it with %q", name, mistake, *n, c.Refused[mistake])
			}
		}
	}
}

// The tables of docs/true-tokens.md agree with the stored results, and each case is a success.
func TestTokensPage(t *testing.T) {
	files, _ := filepath.Glob(testenv.Path(t, "docs", "results", "tokens-*.json"))
	if len(files) == 0 {
		t.Fatal("no results")
	}
	var tables []string
	for _, file := range files {
		r := tokensOf(t, file)
		tables = append(tables, tokensTables(r))
		checkTokens(t, r)
	}
	const begin, end = "<!-- cases: start -->\n", "\n<!-- end of cases -->"
	path := testenv.Path(t, "docs", "true-tokens.md")
	page, err := os.ReadFile(path)
	if err != nil {
		t.Fatal(err)
	}
	before, rest, found := strings.Cut(string(page), begin)
	have, after, closed := strings.Cut(rest, end)
	if !found || !closed {
		t.Fatalf("%s has no place for the tables", path)
	}
	want := strings.TrimSuffix(strings.Join(tables, "\n"), "\n")
	if have == want {
		return
	}
	if *update {
		if err := os.WriteFile(path, []byte(before+begin+want+end+after), 0o644); err != nil {
			t.Fatal(err)
		}
		return
	}
	t.Errorf("the tables in %s are not what the stored results say (-update writes them):\n%s", path, want)
}

// A count that a run left otherwise makes other tables.
func TestTokensTablesFollowTheResults(t *testing.T) {
	var r tokens
	if err := json.Unmarshal([]byte(`{"versions": {"vllm": "0.26.0", "device": "Simulated GPU"}, "cases": {"llama float32 V1 PIECEWISE": {"date": "2026-11-23", "commit": "0123abc", "reference": "equal",
		"tokens": 1348, "identical": 1348, "captures": 0, "distinct": 298, "graphs": 4, "nodes": 108, "pointers": 521, "minutes": 9.4,
		"changed": {"kernel": 656, "pointer": 653, "content": null, "key": 656}, "refused": {"kernel": "verify graph x", "key": "verify graph y"}}}}`), &r); err != nil {
		t.Fatal(err)
	}
	for _, want := range []string{
		"device Simulated GPU, vllm 0.26.0.\n",
		"| llama float32 V1 PIECEWISE | 2026-11-23 | 0123abc | equal | 1348 | 1348 | 0 | 298 | 4 | 108 | 521 | 9 |\n",
		"| llama float32 V1 PIECEWISE | 656 ✓ | 653 | no place | 656 ✓ | not run | | |\n",
	} {
		if page := tokensTables(r); !strings.Contains(page, want) {
			t.Errorf("%q is not in\n%s", want, page)
		}
	}
}
