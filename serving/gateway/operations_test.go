package gateway

import (
	"encoding/json"
	"io"
	"net/http"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"testing"

	"github.com/goccy/go-yaml"

	"medusa/test/stubengine"
	"medusa/test/testenv"
)

var (
	sample   = regexp.MustCompile(`^(medusa_serve_\w+)\{(.*)\} `)
	mention  = regexp.MustCompile(`\b(medusa_serve_\w+)(?:\{([^}]*)\})?`)
	labelled = regexp.MustCompile(`(\w+)\s*(?:=~|!~|!=|=|,|$)`)
	quoted   = regexp.MustCompile(`"[^"]*"`)
)

// exported are the metrics of a server that has answered, refused and failed requests, each with its labels.
func exported(t *testing.T) map[string][]string {
	t.Helper()
	f := start(t, config("torpor", 2, ""), nil)
	for _, model := range []string{"m0", "m1", "m0"} {
		if _, err := stubengine.Ask(t.Context(), f.url, model, "x", false); err != nil {
			t.Fatal(err)
		}
	}
	response, err := http.Get(f.url + "/metrics")
	if err != nil {
		t.Fatal(err)
	}
	defer response.Body.Close()
	text, err := io.ReadAll(response.Body)
	if err != nil {
		t.Fatal(err)
	}
	out := map[string][]string{}
	for _, line := range strings.Split(string(text), "\n") {
		if m := sample.FindStringSubmatch(line); m != nil {
			out[m[1]] = names(m[2])
		}
	}
	return out
}

// names returns the names of labels in the form of a metric or of a table.
func names(labels string) (list []string) {
	for _, m := range labelled.FindAllStringSubmatch(quoted.ReplaceAllString(labels, ""), -1) {
		list = append(list, m[1])
	}
	return list
}

// Documents, alerts and the dashboard name only metrics and labels that the server has, and the table of metrics has all of
// them.
func TestMetricsInDocuments(t *testing.T) {
	metrics := exported(t)
	files := []string{"docs/serve.md", "docs/operations/README.md", "docs/operations/alerts.yaml", "docs/operations/dashboard.json"}
	for _, file := range files {
		text := strings.ReplaceAll(documented(t, file), `\"`, `"`) // as JSON has it
		for _, m := range mention.FindAllStringSubmatch(text, -1) {
			labels, ok := metrics[m[1]]
			if !ok && file == "docs/serve.md" { // a summary, by the name of both of its metrics
				labels, ok = metrics[m[1]+"_sum"]
			}
			if !ok {
				t.Errorf("%s: no metric %s", file, m[1])
			}
			for _, name := range names(m[2]) {
				if name != "instance" && !slices.Contains(labels, name) { // which Prometheus adds
					t.Errorf("%s: %s has no label %s", file, m[1], name)
				}
			}
		}
	}
	table := documented(t, "docs/serve.md")
	for name, labels := range metrics {
		name = strings.TrimSuffix(strings.TrimSuffix(name, "_sum"), "_count")
		if row := "| `" + name + "{" + strings.Join(labels, ",") + "}` |"; !strings.Contains(table, row) {
			t.Errorf("docs/serve.md has no row %s", row)
		}
	}
}

func documented(t *testing.T, file string) string {
	t.Helper()
	text, err := os.ReadFile(testenv.Path(t, file))
	if err != nil {
		t.Fatal(err)
	}
	return string(text)
}

// The alerts are rules, each explained on the page, and the dashboard is JSON with a source of data for each panel.
func TestOperationsFiles(t *testing.T) {
	var rules struct {
		Groups []struct {
			Name  string
			Rules []struct {
				Alert, Expr, For    string
				Labels, Annotations map[string]string
			}
		}
	}
	if err := yaml.Unmarshal([]byte(documented(t, "docs/operations/alerts.yaml")), &rules); err != nil {
		t.Fatal(err)
	}
	page := documented(t, "docs/operations/README.md")
	for _, r := range rules.Groups[0].Rules {
		if r.Expr == "" || r.For == "" || r.Labels["severity"] == "" || r.Annotations["summary"] == "" || !strings.Contains(page, "`"+r.Alert+"`") {
			t.Errorf("alert %+v", r)
		}
	}
	var board struct {
		Panels []struct {
			Title   string
			Targets []struct{ Expr string }
		}
	}
	if err := json.Unmarshal([]byte(documented(t, "docs/operations/dashboard.json")), &board); err != nil || len(board.Panels) == 0 {
		t.Fatalf("%d panels, %v", len(board.Panels), err)
	}
	for _, p := range board.Panels {
		if len(p.Targets) == 0 || p.Targets[0].Expr == "" {
			t.Errorf("panel %q asks for nothing", p.Title)
		}
	}
}

// systemd understands the unit.
func TestUnit(t *testing.T) {
	analyze, err := exec.LookPath("systemd-analyze")
	if err != nil {
		testenv.Skip(t, testenv.Systemd)
	}
	unit := strings.ReplaceAll(documented(t, "docs/operations/medusa-serve.service"), "/opt/medusa/medusa", "/bin/true")
	path := filepath.Join(t.TempDir(), "medusa-serve.service")
	if err := os.WriteFile(path, []byte(unit), 0o644); err != nil {
		t.Fatal(err)
	}
	if out, err := exec.CommandContext(t.Context(), analyze, "verify", path).CombinedOutput(); err != nil || strings.Contains(string(out), "medusa-serve") {
		t.Errorf("%v: %s", err, out)
	}
}
