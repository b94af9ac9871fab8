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

// tested is a file that the comparisons of an engine leave (runners/torch/test/results.py).
type tested struct {
	Versions map[string]string
	Cases    map[string]struct {
		Date                                 string
		Graphs, Nodes, Pointers, Differences int
		ThirdParty                           int `json:"third_party"`
		Milliseconds                         float64
	}
}

const testedHead = `# What was tested, by engine

Each row is one case that was started natively, materialized, restored in a new process and compared. The time is
what Medusa itself took of the restored start, disks included. torch's workspaces for cuBLAS, which an artifact holds, had their default size. ` + "`make test-torch`" + ` and
` + "`make test-vllm`" + ` write the results to ` + "`docs/results/tested`" + `; ` + "`go test ./test/promises -run TestTestedPage -update`" + ` makes this page
of them.
`

// testedPage renders the results. An engine without any has no table.
func testedPage(engines map[string]tested) string {
	var page strings.Builder
	page.WriteString(testedHead)
	if len(engines) == 0 {
		page.WriteString("\nNo results are stored yet.\n")
	}
	for _, name := range slices.Sorted(maps.Keys(engines)) {
		e := engines[name]
		var versions []string
		for _, what := range slices.Sorted(maps.Keys(e.Versions)) {
			versions = append(versions, what+" "+e.Versions[what])
		}
		fmt.Fprintf(&page, "\n## %s\n\n%s.\n\n| case | date | graphs | nodes | third-party kernels | pointers | differences | Medusa's own ms |\n|---|---|---:|---:|---:|---:|---:|---:|\n",
			name, strings.Join(versions, ", "))
		for _, c := range slices.Sorted(maps.Keys(e.Cases)) {
			r := e.Cases[c]
			fmt.Fprintf(&page, "| %s | %s | %d | %d | %d | %d | %d | %.1f |\n", c, r.Date, r.Graphs, r.Nodes, r.ThirdParty, r.Pointers, r.Differences, r.Milliseconds)
		}
	}
	return page.String()
}

// The page agrees with the stored results.
func TestTestedPage(t *testing.T) {
	files, err := filepath.Glob(testenv.Path(t, "docs", "results", "tested", "*.json"))
	if err != nil {
		t.Fatal(err)
	}
	engines := map[string]tested{}
	for _, path := range files {
		data, err := os.ReadFile(path)
		if err != nil {
			t.Fatal(err)
		}
		var e tested
		if err := json.Unmarshal(data, &e); err != nil || len(e.Cases) == 0 {
			t.Fatalf("%s: %v, %d cases", path, err, len(e.Cases))
		}
		engines[strings.TrimSuffix(filepath.Base(path), ".json")] = e
	}
	page := testenv.Path(t, "docs", "results", "tested.md")
	want := testedPage(engines)
	if *update {
		if err := os.WriteFile(page, []byte(want), 0o644); err != nil {
			t.Fatal(err)
		}
	}
	got, err := os.ReadFile(page)
	if err != nil {
		t.Fatal(err)
	}
	if string(got) != want {
		t.Errorf("%s is not what the stored results say; make it anew with -update", page)
	}
}

// A row that a run did not leave, or a count that it left otherwise, makes another page.
func TestTestedPageFollowsTheResults(t *testing.T) {
	var e tested
	if err := json.Unmarshal([]byte(`{"versions": {"torch": "2.8.0", "device": "Simulated GPU"},
		"cases": {"falcon-7b": {"date": "2026-11-22", "graphs": 2, "nodes": 188, "third_party": 150, "pointers": 542, "differences": 0, "milliseconds": 41.3}}}`), &e); err != nil {
		t.Fatal(err)
	}
	page := testedPage(map[string]tested{"torch": e})
	for _, want := range []string{"## torch\n\ndevice Simulated GPU, torch 2.8.0.\n", "| falcon-7b | 2026-11-22 | 2 | 188 | 150 | 542 | 0 | 41.3 |\n"} {
		if !strings.Contains(page, want) {
			t.Errorf("%q is not in\n%s", want, page)
		}
	}
	if page == testedPage(nil) {
		t.Error("results make no difference")
	}
}
