package main

import (
	"context"
	"errors"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"time"

	"medusa/interpose"
	"medusa/test/testenv"
)

func newKit(t *testing.T) *Kit {
	k := &Kit{Root: t.TempDir(), Out: t.TempDir(), Work: t.TempDir(), Device: "simulated", Python: "python3"}
	if err := os.Mkdir(filepath.Join(k.Work, "logs"), 0o755); err != nil {
		t.Fatal(err)
	}
	return k
}

// A step passes only if it looked at something, found the expected value and ended within its limit.
func TestVerdict(t *testing.T) {
	looked := func(a *Attempt) error { a.row("x", "y"); return nil }
	for _, c := range []struct {
		name    string
		step    Step
		verdict string
		reason  string
	}{
		{"as expected", Step{1, "s", time.Minute, looked}, pass, ""},
		{"unexpected", Step{1, "s", time.Minute, func(a *Attempt) error { a.row("x", "y"); return errors.New("x is not z") }}, fail, "x is not z"},
		{"empty", Step{1, "s", time.Minute, func(*Attempt) error { return nil }}, fail, "looked at nothing"},
		{"no such program", Step{1, "s", time.Minute, func(a *Attempt) error { _, err := a.run(nil, "/nonexistent/x"); return err }}, fail, "start x"},
		{"exit code", Step{1, "s", time.Minute, func(a *Attempt) error { a.row("x", "y"); _, err := a.run(nil, "false"); return err }}, fail, "exit code 1"},
		{"too long, no error", Step{1, "s", time.Millisecond, func(a *Attempt) error { a.row("x", "y"); <-a.ctx.Done(); return nil }}, fail, "longer than 1ms"},
	} {
		t.Run(c.name, func(t *testing.T) {
			got := newKit(t).try(t.Context(), c.step)
			if got.Verdict != c.verdict || !strings.Contains(got.Reason, c.reason) || c.reason == "" && got.Reason != "" {
				t.Errorf("%s, reason %q; want %s, %q", got.Verdict, got.Reason, c.verdict, c.reason)
			}
		})
	}
}

// The page goes into the project: it holds no path of the machine that made it.
func TestNoPathOfTheMachine(t *testing.T) {
	k := newKit(t)
	got := k.try(t.Context(), Step{1, "s", time.Minute, func(a *Attempt) error {
		a.row("kept", "2 files in %s", filepath.Join(k.Work, "traces"))
		a.row("made", "%s by %s", filepath.Join(k.Out, "page.md"), filepath.Join(k.Root, "bin", "medusa"))
		return fmt.Errorf("open %s: no such file", filepath.Join(k.Work, "logs", "x.txt"))
	}})
	want := []Row{{"kept", "2 files in work/traces"}, {"made", "results/page.md by gpu-kit/bin/medusa"}}
	if reason := "open work/logs/x.txt: no such file"; !slices.Equal(got.Rows, want) || got.Reason != reason {
		t.Errorf("rows %q, reason %q; want %q, %q", got.Rows, got.Reason, want, reason)
	}
}

// At its limit a step's processes end, children too, and its findings are kept.
func TestLimitEndsTheGroup(t *testing.T) {
	k := newKit(t)
	mark := filepath.Join(k.Work, "late")
	began := time.Now()
	got := k.try(t.Context(), Step{1, "s", 300 * time.Millisecond, func(a *Attempt) error {
		a.row("before", "found")
		_, err := a.run(nil, "sh", "-c", "(sleep 1; touch "+mark+") & sleep 60")
		return err
	}})
	if got.Verdict != fail || !strings.Contains(got.Reason, "longer than") || len(got.Rows) != 1 || time.Since(began) > 2*patience {
		t.Errorf("%+v after %v", got, time.Since(began))
	}
	time.Sleep(1500 * time.Millisecond)
	if _, err := os.Stat(mark); err == nil {
		t.Error("a child went on after its step's limit")
	}
}

// The last line and the exit code are about the steps of the call; the page also has those of earlier calls on the same device.
func TestCall(t *testing.T) {
	good := Step{1, "good", time.Minute, func(a *Attempt) error { a.row("x", "y|z"); return nil }}
	bad := Step{2, "bad", time.Minute, func(a *Attempt) error { return errors.New("not as expected") }}
	never := Step{3, "never", time.Minute, nil}
	k := newKit(t)
	all := []Step{good, bad, never}
	for _, c := range []struct {
		steps []int
		line  string
		ok    bool
	}{
		{[]int{1}, "gpu-kit: PASS device=simulated steps=1:PASS", true},
		{[]int{1, 2}, "gpu-kit: FAIL device=simulated steps=1:PASS,2:FAIL", false},
		{[]int{2}, "gpu-kit: FAIL device=simulated steps=2:FAIL", false},
		{nil, "gpu-kit: FAIL device=simulated steps=", false},
	} {
		line, ok, err := k.call(context.Background(), all, c.steps)
		if line != c.line || ok != c.ok || err != nil {
			t.Errorf("steps %v: %q, %v, %v; want %q, %v", c.steps, line, ok, err, c.line, c.ok)
		}
	}
	if line, ok, err := k.call(context.Background(), all, []int{4}); ok || err == nil || !strings.Contains(line, "FAIL") {
		t.Errorf("a step that does not exist: %q, %v, %v", line, ok, err)
	}
	page, err := os.ReadFile(filepath.Join(k.Out, "page.md"))
	if err != nil {
		t.Fatal(err)
	}
	for _, want := range []string{"| 1. good | PASS |", "| 2. bad | FAIL |", "| 3. never | not made |", "not as expected", `| x | y\|z |`, "no figure here is a time on a GPU", "GPU row missing"} {
		if !strings.Contains(string(page), want) {
			t.Errorf("the page has no %q:\n%s", want, page)
		}
	}
	names, err := os.ReadDir(k.Out)
	if err != nil || len(names) != 3 {
		t.Errorf("%d files in the output folder, want page.md, report.json and logs.tar.gz (%v)", len(names), err)
	}
}

func TestParseSteps(t *testing.T) {
	if got, err := parseSteps("1-3,6"); err != nil || !slices.Equal(got, []int{1, 2, 3, 6}) {
		t.Errorf("%v, %v", got, err)
	}
	for _, text := range []string{"", "0", "3-1", "x", "1-", "1,,2"} {
		if got, err := parseSteps(text); err == nil {
			t.Errorf("%q: %v, want an error", text, got)
		}
	}
}

// Steps leave a command of ten minutes time to spare, and are numbered as documented.
func TestSteps(t *testing.T) {
	for i, s := range steps() {
		if s.Number != i+1 || s.Limit >= 10*time.Minute || s.Name == "" {
			t.Errorf("step %d: %+v", i+1, s)
		}
	}
	for _, s := range newKit(t).limited(steps()) {
		if s.Limit != simulatedLimit || s.Limit >= 10*time.Minute {
			t.Errorf("step %d has %v on the simulated GPU", s.Number, s.Limit)
		}
	}
	if len(steps()) != 12 {
		t.Errorf("%d steps, want 12", len(steps()))
	}
}

func TestFilled(t *testing.T) {
	region := interpose.Region{Base: 1000, Size: 1000}
	for _, c := range []struct {
		out  string
		want string
	}{
		{"at 1000\nat 1999\nkept 1\n", ""},
		{"at 1000\nkept 0\n", "keep its bytes"},
		{"at 1000\n", "keep its bytes"},
		{"kept 1\n", "no allocation"},
		{"at 2000\nkept 1\n", "outside"},
		{"at 999\nkept 1\n", "outside"},
	} {
		if err := filled(c.out, region); (err == nil) != (c.want == "") || err != nil && !strings.Contains(err.Error(), c.want) {
			t.Errorf("%q: %v, want %q", c.out, err, c.want)
		}
	}
}

func TestSameOutputs(t *testing.T) {
	base := `{"start":"native","graphs":1,"tokens":{"1":[[1,2]]},"logits":{"1":"aa"}}`
	a, err := parseStart("noise\n" + base)
	if err != nil {
		t.Fatal(err)
	}
	for text, want := range map[string]string{
		base:                                 "",
		strings.Replace(base, "aa", "ab", 1): "logits differ",
		strings.Replace(base, "[1,2]", "[1,3]", 1): "tokens differ",
		`{}`: "no logits",
	} {
		b, err := parseStart(text)
		if err == nil {
			err = sameOutputs(b, a)
		}
		if (err == nil) != (want == "") || err != nil && !strings.Contains(err.Error(), want) {
			t.Errorf("%s: %v, want %q", text, err, want)
		}
	}
	if _, err := parseStart("no JSON"); err == nil {
		t.Error("a report that is none is accepted")
	}
}

// Two steps of the kit as it is shipped, on the simulated GPU; and a driver that does not do as asked fails its step.
func TestKitOnTheSimulatedGPU(t *testing.T) {
	testenv.Build(t, "gpu-kit-base")
	for _, c := range []struct {
		env  string
		last string
	}{
		{"SIMGPU_LOG=/dev/null", "gpu-kit: PASS device=simulated steps=1:PASS,4:PASS"},
		{"SIMGPU_VMM_HINTS=refuse", "gpu-kit: FAIL device=simulated steps=1:FAIL,4:FAIL"},
	} {
		out := t.TempDir()
		cmd := exec.CommandContext(t.Context(), testenv.Path(t, "build", "kit", "gpukit"), "-out", out, "-work", t.TempDir(), "-device", "simulated", "-steps", "1,4")
		cmd.Env = append(os.Environ(), c.env)
		text, err := cmd.Output()
		if lastLine(string(text)) != c.last || (err == nil) != strings.Contains(c.last, "PASS device") {
			t.Errorf("%s: %v\n%s", c.env, err, text)
		}
		if _, err := os.Stat(filepath.Join(out, "report.json")); err != nil {
			t.Error(err)
		}
	}
}
