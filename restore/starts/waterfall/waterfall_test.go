package waterfall

import (
	"bytes"
	"context"
	"flag"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"testing"
	"time"

	"medusa/test/testenv"
)

var update = flag.Bool("update", false, "write testdata/page.html")

// two starts: in the first, two processes import beside each other. Names try to break out of the page.
func two() []Start {
	began := time.Unix(1e9, 0)
	at := func(ms int) time.Time { return began.Add(time.Duration(ms) * time.Millisecond) }
	mark := func(name string, ms int) Mark { return Mark{name, time.Duration(ms) * time.Millisecond} }
	took := func(name string, ms int) Package { return Package{name, time.Duration(ms) * time.Millisecond} }
	return []Start{
		{
			Mode: "native", Began: began, Phases: []Mark{mark("import", 0), mark("ready", 6000), mark("healthy", 7500), mark("answered", 8000)},
			Processes: []Process{
				{
					Command: []string{"python3", "</text><script>alert(1)</script>"}, Began: at(100),
					Imports: []Import{{Interval{at(200), at(3200)}, []Package{took("torch", 2000), took("vllm", 900), took("a", 100)}}},
					Waits:   []Interval{{at(4000), at(7000)}, {at(7900), at(9000)}},
				},
				{Command: []string{"python3", "helper"}, Began: at(300), Imports: []Import{{Interval{at(300), at(310)}, nil}}},
				{Command: []string{"python3", "core"}, Began: at(3000), Imports: []Import{{Interval{at(3000), at(5000)}, []Package{took("torch", 1500), took("transformers", 500)}}}},
			},
		},
		{Mode: "restored", Began: began, Phases: []Mark{mark("import", 0), mark("answered", 2000)}},
	}
}

func drawn(t *testing.T) string {
	t.Helper()
	var out bytes.Buffer
	if err := Write(&out, "Starts of <b>vllm</b>", "a table\n", two()); err != nil {
		t.Fatal(err)
	}
	return out.String()
}

func TestPage(t *testing.T) {
	path := filepath.Join("testdata", "page.html")
	got := drawn(t)
	if *update {
		if err := os.WriteFile(path, []byte(got), 0o644); err != nil {
			t.Fatal(err)
		}
	}
	want, err := os.ReadFile(path)
	if err != nil {
		t.Fatal(err)
	}
	if got != string(want) {
		t.Error("the page differs from testdata/page.html (go test ./restore/starts/waterfall -update, if it should)")
	}
	// By hand: 980 pixels are 8 seconds, and begin at 10.
	for _, part := range []string{
		`<rect class="phase0" x="10" y="22" width="735" height="18"><title>import: 6.00 s</title>`,
		`x="34.5" y="62" width="245" height="18"><title>torch: 2.00 s</title>`,
		`x="279.5" y="62" width="110.25" height="18"><title>vllm: 0.90 s</title>`,
		`<rect class="waits" x="500" y="80" width="367.5" height="6">`,
		`begins after 0.10 s, imports for 3.00 s, waits for 3.10 s: python3 &lt;/text&gt;`,
		`restored: 2.0 s`,
	} {
		if !strings.Contains(got, part) {
			t.Errorf("the page lacks %s", part)
		}
	}
	for _, part := range []string{"<script", "helper", "NaN", "Inf"} {
		if strings.Contains(got, part) {
			t.Errorf("the page has %s", part)
		}
	}
}

const imports = `
import sys, time
sys.path.insert(0, sys.argv[1])
import outer
time.sleep(0.5)
`

// A real interpreter: an import within another counts for its own package, another sitecustomize runs, and a sleep is a wait.
func TestRecord(t *testing.T) {
	python, err := exec.LookPath("python3")
	if err != nil {
		testenv.Skip(t, testenv.Python)
	}
	dir, modules := t.TempDir(), t.TempDir()
	for name, text := range map[string]string{
		"outer.py": "import time, inner\ntime.sleep(0.1)\n", "inner.py": "import time\ntime.sleep(0.2)\n",
		"sitecustomize.py": "import os\nopen(os.path.join(os.path.dirname(__file__), 'ran'), 'w').close()\n",
	} {
		if err := os.WriteFile(filepath.Join(modules, name), []byte(text), 0o644); err != nil {
			t.Fatal(err)
		}
	}
	began := time.Now()
	r, err := Prepare(dir)
	if err != nil {
		t.Fatal(err)
	}
	cmd := exec.Command(python, "-c", imports, modules)
	cmd.Env = append(os.Environ(), "PYTHONPATH="+dir+":"+modules)
	if out, err := cmd.CombinedOutput(); err != nil || len(out) > 0 {
		t.Errorf("%v: %s", err, out)
	}
	list, err := r.Processes()
	if err != nil || len(list) == 0 {
		t.Fatalf("%d processes, %v", len(list), err)
	}
	p := list[len(list)-1] // a shim may be a program before it
	if p.Began.Before(began) || len(p.Command) != 4 || p.Command[3] != modules {
		t.Errorf("process %+v", p)
	}
	took := map[string]time.Duration{}
	for _, i := range p.Imports {
		for _, one := range i.Packages {
			took[one.Name] += one.Took
		}
	}
	if took["inner"] < 200*time.Millisecond || took["outer"] < 100*time.Millisecond || took["outer"] > took["inner"] {
		t.Errorf("packages took %v", took)
	}
	if _, err := os.Stat(filepath.Join(modules, "ran")); err != nil {
		t.Error("the other sitecustomize did not run")
	}
	if !slices.ContainsFunc(p.Waits, func(w Interval) bool { return w.To.Sub(w.From) > 200*time.Millisecond }) {
		t.Errorf("waits %v", p.Waits)
	}
}

// The file of a killed process is read up to its last whole line. Other malformed text is an error.
func TestParse(t *testing.T) {
	p, err := parse([]byte("[5, 0, [\"x\"]]\n[6, 9, {\"b\": 1, \"a\": 2}]\n[10, 1"))
	if err != nil || len(p.Imports) != 1 || p.Imports[0].Packages[0].Name != "a" || p.Began.UnixNano() != 5 {
		t.Errorf("%+v, %v", p, err)
	}
	for _, text := range []string{"x\n", "[1, 0, {}]\n", "[1, 2, []]\n", "{}\n"} {
		if _, err := parse([]byte(text)); err == nil {
			t.Errorf("%q is read", text)
		}
	}
}

// A browser lays the page out: no part is wider than the window, all bars are to be seen, and the console stays empty.
func TestPageInBrowser(t *testing.T) {
	browser, err := exec.LookPath("chromium")
	if err != nil {
		testenv.Skip(t, testenv.Chromium)
	}
	dir := t.TempDir()
	path := filepath.Join(dir, "report.html")
	probe := `<script>addEventListener("load",()=>{document.title=(document.documentElement.scrollWidth>innerWidth?"wide":"fits")+" bars="+` +
		`[...document.querySelectorAll("#waterfall rect")].filter(e=>e.getBoundingClientRect().width>0&&getComputedStyle(e).fill!="rgb(0, 0, 0)").length})</script></body>`
	p := strings.Replace(drawn(t), "</body>", probe, 1)
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
		if strings.Contains(stderr.String(), ":CONSOLE") {
			t.Errorf("console: %s", stderr.String())
		}
		title := regexp.MustCompile(`<title>(.*?)</title>`).FindSubmatch(dom)
		if title == nil || string(title[1]) != "fits bars=11" {
			t.Errorf("at %s: %s", width, title)
		}
	}
}
