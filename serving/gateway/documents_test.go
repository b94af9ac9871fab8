package gateway

import (
	"flag"
	"fmt"
	"os"
	"reflect"
	"strings"
	"testing"

	"medusa/internal/apierror"
	"medusa/internal/apirequest"
	"medusa/test/testenv"
)

var updating = flag.Bool("update", false, "write the table of paths anew")

// The page's table of paths is the code's.
func TestPathsInDocuments(t *testing.T) {
	var b strings.Builder
	b.WriteString("| path | model | stream | errors |\n|---|---|---|---|\n")
	for _, e := range apirequest.Endpoints() {
		stream := "–"
		if e.Streams {
			stream = "yes"
		}
		fmt.Fprintf(&b, "| `%s %s` | %s | %s | %s |\n", e.Method, e.Path, e.Model, stream,
			map[apierror.Form]string{apierror.OpenAI: "OpenAI", apierror.Responses: "OpenAI's responses", apierror.Anthropic: "Anthropic"}[e.Errors])
	}
	text := documented(t, "docs/serve.md")
	before, rest, found := strings.Cut(text, "<!-- paths: start -->\n")
	table, after, also := strings.Cut(rest, "<!-- paths: end -->")
	if !found || !also {
		t.Fatal("docs/serve.md has no place for the paths")
	}
	if *updating {
		if err := os.WriteFile(testenv.Path(t, "docs/serve.md"), []byte(before+"<!-- paths: start -->\n"+b.String()+"<!-- paths: end -->"+after), 0o644); err != nil {
			t.Fatal(err)
		}
		return
	}
	if table != b.String() {
		t.Errorf("the table of paths in docs/serve.md is another than\n%s", b.String())
	}
}

// Each setting of the file has its row.
func TestSettingsInDocuments(t *testing.T) {
	text := documented(t, "docs/serve.md")
	for _, of := range []any{Spec{}, Model{}} {
		kind := reflect.TypeOf(of)
		for i := range kind.NumField() {
			name := kind.Field(i).Tag.Get("yaml")
			if name == "" || name == "agent" || name == "models" {
				continue
			}
			found := false
			for line := range strings.Lines(text) {
				cells := strings.Split(line, "|")
				found = found || len(cells) > 3 && strings.Contains(cells[1], "`"+name+"`")
			}
			if !found {
				t.Errorf("docs/serve.md has no row for %s", name)
			}
		}
	}
}
