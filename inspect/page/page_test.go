package page

import (
	"bytes"
	"context"
	"encoding/json"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"strings"
	"testing"
	"time"

	"medusa/artifacts"
	"medusa/graphir"
	"medusa/kvprofile"
	"medusa/test/testenv"
)

// full has a value for every part of the page. Its names try to break out of the HTML.
func full(t *testing.T) *artifacts.Artifact {
	t.Helper()
	data, err := os.ReadFile(filepath.Join("..", "..", "graphir", "testdata", "v2.graph"))
	if err != nil {
		t.Fatal(err)
	}
	spec, err := graphir.Decode(data)
	if err != nil {
		t.Fatal(err)
	}
	spec.Kernels[0].Name = `<script src="https://example.com/x.js"></script>`
	spec.Graphs[0].Label = `"><img src=//example.com/y>`
	for range 3000 {
		spec.Allocations = append(spec.Allocations, graphir.Allocation{Kind: 1, Owner: graphir.OwnerGraph, Size: 4096, Live: true})
		spec.Sequence = append(spec.Sequence, graphir.Step{Alloc: uint32(len(spec.Allocations) - 1)})
	}
	return &artifacts.Artifact{
		Identity: artifacts.Identity{{Key: "gpu.name", Value: "Simulated GPU"}, {Key: "engine.name", Value: "x"}, {Key: "engine.args", Value: strings.Repeat("arg ", 100)}},
		Spec:     spec, Created: time.Unix(1e9, 0).UTC(),
		Stages: []artifacts.StageTimes{
			{Mode: "native", Device: "GPU", Date: "2026-01-02", Stages: []artifacts.Stage{{Name: "weights", Seconds: 1.5}, {Name: "capture", Seconds: 4.5}}},
			{Mode: "restored", Device: "GPU", Date: "2026-01-02", Stages: []artifacts.Stage{{Name: "weights", Seconds: 1.5}, {Name: "capture", Seconds: 0.5}}},
		},
		Verification: artifacts.Verification{Device: "GPU", Driver: "12080", Date: "2026-01-02", Graphs: []artifacts.GraphCheck{{Label: "a"}}},
		Directories:  []artifacts.Directory{{Name: "triton", Path: "/cache", Size: 10, Files: 2}},
		KV:           kvprofile.Profile{KVBytes: 50 << 30, TotalMemory: 80 << 30, FreeBefore: 79 << 30, FreeAfter: 65 << 30, PeakForward: 6 << 30, Utilization: 0.9},
	}
}

func render(t *testing.T, art *artifacts.Artifact) string {
	t.Helper()
	var out bytes.Buffer
	if err := Write(&out, "some/dir/x.medusa", art, []artifacts.Section{{Kind: "graph", Offset: 24, StoredSize: 2048, Size: 4096}}); err != nil {
		t.Fatal(err)
	}
	return out.String()
}

func TestPageSaysWhatTheArtifactHolds(t *testing.T) {
	p := render(t, full(t))
	for _, want := range []string{
		`<td>allowed to the engine by its own setting</td><td>72.0 GiB</td>`, `<td>needed free by a restored start</td><td>70.0 GiB</td>`,
		"<title>x.medusa · Medusa</title>", "<b>2 s</b><span>restored start</span>", "natively 6 s: 3.0 times as long",
		`style="width:75.00%" title="capture: 4.5 s"`, "Made on a <b>simulated</b> GPU", ">gemm_8x8<", "decode 1: batch 1, 5 nodes",
		"capture begins", "3000 allocations</td><td>11.7 MiB", "<code>/cache</code>", "2.02 KiB",
	} {
		if !strings.Contains(p, want) {
			t.Errorf("the page lacks %q", want)
		}
	}
	if n := strings.Count(p, "<rect"); n > 600 {
		t.Errorf("%d rectangles: allocations are not bundled", n)
	}
	if other := render(t, full(t)); other != p {
		t.Error("equal artifacts give different pages")
	}
}

func TestPageOfNothing(t *testing.T) {
	p := render(t, &artifacts.Artifact{Spec: &graphir.Spec{}})
	for _, want := range []string{"No start was measured", "No verification is recorded", "There are none"} {
		if !strings.Contains(p, want) {
			t.Errorf("the page lacks %q", want)
		}
	}
	if strings.Contains(p, "NaN") || strings.Contains(p, "Inf") {
		t.Error("a share of nothing is shown")
	}
}

var (
	tag       = regexp.MustCompile(`<([a-zA-Z]+)([^>]*)>`)
	attribute = regexp.MustCompile(`([a-zA-Z-]+)\s*=\s*"([^"]*)"`)
)

// The page loads no other file and runs no script, for any names in the artifact.
func TestPageRefersToNothing(t *testing.T) {
	p := render(t, full(t))
	tags := tag.FindAllStringSubmatch(p, -1)
	if len(tags) < 100 {
		t.Fatalf("%d tags", len(tags))
	}
	for _, m := range tags {
		switch strings.ToLower(m[1]) {
		case "script", "iframe", "object", "embed", "img", "base", "form", "a", "video", "audio", "source", "image", "use":
			t.Errorf("the page has %s", m[0])
		}
		for _, a := range attribute.FindAllStringSubmatch(m[2], -1) {
			switch name := strings.ToLower(a[1]); {
			case name == "href" && a[2] == "data:,": // no icon: a browser would request one otherwise
			case name == "href", name == "src", name == "srcset", name == "action", name == "data", name == "poster", strings.HasPrefix(name, "on"):
				t.Errorf("the page has %s", m[0])
			}
		}
	}
	for _, word := range []string{"url(", "@import"} {
		if strings.Contains(p, word) {
			t.Errorf("the page has %s", word)
		}
	}
}

var opening = regexp.MustCompile(`<(/?)([a-z0-9]+)[^>]*?(/?)>`)

// Every element is closed, in order.
func TestPageIsWellFormed(t *testing.T) {
	void := map[string]bool{"meta": true, "link": true, "line": true, "rect": true, "polygon": true}
	var stack []string
	for _, m := range opening.FindAllStringSubmatch(render(t, full(t)), -1) {
		switch name := m[2]; {
		case m[1] == "" && m[3] == "" && !(void[name] && name != "rect" && name != "line"):
			stack = append(stack, name)
		case m[1] == "/":
			if len(stack) == 0 || stack[len(stack)-1] != name {
				t.Fatalf("</%s> closes %v", name, stack)
			}
			stack = stack[:len(stack)-1]
		}
	}
	if len(stack) != 0 {
		t.Errorf("left open: %v", stack)
	}
}

// A browser shows the page without a message on its console. If chromium is not installed, only the tests above apply.
func TestPageInBrowser(t *testing.T) {
	browser, err := exec.LookPath("chromium")
	if err != nil {
		testenv.Skip(t, testenv.Chromium)
	}
	dir := t.TempDir()
	path := filepath.Join(dir, "report.html")
	// Report two facts after layout: whether the page is wider than the window, and the number of visible bars.
	probe := `<script>addEventListener("load",()=>{document.title=JSON.stringify({wide:document.documentElement.scrollWidth>innerWidth,` +
		`bars:[...document.querySelectorAll("#stages .track span")].filter(e=>e.getBoundingClientRect().width>1).length})})</script></body>`
	p := strings.Replace(render(t, full(t)), "</body>", probe, 1)
	p = strings.Replace(p, "default-src 'none'", "default-src 'none'; script-src 'unsafe-inline'", 1)
	if err := os.WriteFile(path, []byte(p), 0o644); err != nil {
		t.Fatal(err)
	}
	for _, width := range []string{"1200,900", "700,900"} {
		ctx, cancel := context.WithTimeout(t.Context(), 2*time.Minute)
		defer cancel()
		cmd := exec.CommandContext(ctx, browser, "--headless", "--no-sandbox", "--disable-gpu", "--disable-quic", "--no-first-run",
			"--disable-background-networking", "--disable-component-update", "--disable-sync", "--disable-dev-shm-usage",
			"--enable-logging=stderr", "--user-data-dir="+filepath.Join(dir, width), "--window-size="+width, "--dump-dom", "file://"+path)
		var stderr bytes.Buffer
		cmd.Stderr = &stderr
		dom, err := cmd.Output()
		if err != nil {
			t.Fatalf("chromium: %v\n%s", err, stderr.String())
		}
		for _, line := range strings.Split(stderr.String(), "\n") {
			if strings.Contains(line, ":CONSOLE") {
				t.Errorf("console: %s", line)
			}
		}
		title := regexp.MustCompile(`<title>(\{.*?\})</title>`).FindSubmatch(dom)
		var seen struct {
			Wide bool
			Bars int
		}
		if title == nil || json.Unmarshal(title[1], &seen) != nil {
			t.Fatalf("the page was not laid out: %.300s", dom)
		}
		if seen.Wide || seen.Bars != 4 {
			t.Errorf("at %s: wider than the window: %v; %d of 4 stages are visible", width, seen.Wide, seen.Bars)
		}
	}
}
