package main

import (
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"medusa/test/testenv"
)

func TestJudge(t *testing.T) {
	p, err := newPlaces(map[string]uint64{"cuA_v2": 16, "cuB": 32}, map[string]uint64{"cuA_v2": 100}, map[string]known{"cuA_v2": {Hook: true}, "cuB": {}})
	if err != nil {
		t.Fatal(err)
	}
	hooked := answer{"ask cuA 12000 0", "0 0", "libcuda.so.1", "16"}
	plain := answer{"ask cuB 12000 0", "0 0", "libcuda.so.1", "32"}
	none := answer{"ask cuA 1000 0", "500 2", "-", "0"}
	hook := answer{hooked.question, "0 0", interposerName, "100"}
	for _, c := range []struct {
		name        string
		native, got answer
		active      bool
		fault       string
	}{
		{"hook", hooked, hook, true, ""},
		{"no hook", plain, plain, true, ""},
		{"nothing", none, none, true, ""},
		{"off", hooked, hooked, false, ""},
		{"a hook that is missing", hooked, hooked, true, "want the hook of cuA_v2"},
		{"another hook", hooked, answer{hooked.question, "0 0", interposerName, "101"}, true, "want the hook of cuA_v2"},
		{"a hook though off", hooked, hook, false, "want libcuda.so.1+16"},
		{"a hook of what has none", plain, answer{plain.question, "0 0", interposerName, "100"}, true, "want libcuda.so.1+32"},
		{"another result", none, answer{none.question, "0 2", "-", "0"}, true, "result and status"},
		{"another status", hooked, answer{hook.question, "0 1", hook.file, hook.offset}, true, "result and status"},
		{"another question", hooked, answer{"ask cuB 12000 0", "0 0", interposerName, "100"}, true, "asked in place"},
	} {
		if got := p.judge(c.native, c.got, c.active); (got == "") != (c.fault == "") || !strings.Contains(got, c.fault) {
			t.Errorf("%s: %q, want %q", c.name, got, c.fault)
		}
	}
	for _, c := range []struct {
		a     answer
		fault bool
	}{{hooked, false}, {none, false}, {answer{"q", "0 0", "libcuda.so.1", "17"}, true}, {answer{"q", "0 0", "libc.so.6", "16"}, true}, {answer{"q", "0 0", "nowhere", "0"}, true}} {
		if got := p.judgeNative(c.a); (got != "") != c.fault {
			t.Errorf("%+v: %q", c.a, got)
		}
	}
	if _, err := newPlaces(map[string]uint64{"cuA": 1, "cuB": 1}, nil, map[string]known{"cuA": {Hook: true}}); err == nil {
		t.Error("a hooked function that shares its address with another one passes")
	}
	if _, err := parseAnswers("one two three\n"); err == nil {
		t.Error("a line of three words is an answer")
	}
}

func TestUnhooked(t *testing.T) {
	spec := map[string]known{"cuMemAlloc_v2": {Hook: true}, "cuGraphAddNode": {}, "cuLaunchX_ptsz": {Hook: true}}
	driver := map[string]uint64{"cuMemAlloc_v2": 1, "cuGraphAddNode": 2, "cuLaunchX": 3, "cuLaunchX_ptsz": 4, "cuInit": 5, "cuNewAlloc": 6, "cuNewAlloc_ptsz": 7}
	found := unhooked(driver, spec)
	if want := []string{"cuGraphAddNode", "cuLaunchX", "cuNewAlloc"}; !slices.Equal(found, want) {
		t.Errorf("found %v, want %v", found, want)
	}
	expected, err := parseExpected([]byte("# comment\n\ncuGraphAddNode read later\ncuLaunchX a reason\ncuMemAlloc_v2 no longer true\n"))
	if err != nil {
		t.Fatal(err)
	}
	faults := compareExpected(found, expected, spec)
	if len(faults) != 2 || !strings.Contains(faults[0], "cuNewAlloc: no hook knows it") || !strings.Contains(faults[1], "cuMemAlloc_v2: unhooked.txt says") {
		t.Errorf("faults %q", faults)
	}
	for _, text := range []string{"cuX\n", "cuX \n", "x reason\n", "cuX a\ncuX b\n"} {
		if _, err := parseExpected([]byte(text)); err == nil {
			t.Errorf("%q is a list", text)
		}
	}
	if _, err := parseExpected(unhookedText); err != nil {
		t.Error(err)
	}
}

func TestTrials(t *testing.T) {
	c := trial{"x", nil, 1, noDevice}
	clean := "x: open device: cuInit: " + noDevice + "\n"
	for out, want := range map[string]string{
		clean:                              "",
		"Starting\n" + clean:               "",
		clean + clean:                      "2 lines",
		"x: failed\n":                      "0 lines",
		clean + "panic: oh\n":              "panic",
		clean + "signal: killed\n":         "signal:",
		clean + "Segmentation fault\n":     "Segmentation",
		"x: %!v(MISSING) " + noDevice + "": "%!",
	} {
		err := c.judge(1, out)
		if (err == nil) != (want == "") || err != nil && !strings.Contains(err.Error(), want) {
			t.Errorf("%q: %v, want %q", out, err, want)
		}
	}
	if c.judge(0, clean) == nil || c.judge(-1, clean) == nil {
		t.Error("another exit code passes")
	}
}

// The same questions to the simulated GPU's driver: in every mode, hooks and functions lie at the places of driver.spec. A library
// without a hook shows.
func TestEntryPointsOfTheSimulatedDriver(t *testing.T) {
	testenv.Build(t, "lib", "build/test/real-query")
	s := &test{build: testenv.Path(t, "build"), spec: testenv.Path(t, "internal", "cuda", "driver.spec"), driver: testenv.Path(t, "build", "simulated"), scratch: t.TempDir()}
	c, err := s.entryPoints(t.Context())
	if err != nil {
		t.Fatal(err)
	}
	for _, f := range s.faults {
		if !strings.Contains(f.Error(), "unhooked.txt") { // is about the real driver
			t.Error(f)
		}
	}
	if c.names < 300 || c.queries < c.names*100 {
		t.Errorf("%+v: too few questions", c)
	}

	s = &test{build: t.TempDir(), spec: s.spec, driver: s.driver, scratch: t.TempDir()}
	for _, dir := range []string{"lib", "test"} {
		if err := os.MkdirAll(filepath.Join(s.build, dir), 0o755); err != nil {
			t.Fatal(err)
		}
	}
	source := filepath.Join(t.TempDir(), "empty.c")
	if err := os.WriteFile(source, []byte("int cuInitNot(void) { return 0; }\n"), 0o644); err != nil {
		t.Fatal(err)
	}
	if out, err := exec.Command("cc", "-shared", "-fPIC", "-o", filepath.Join(s.build, "lib", interposerName), source).CombinedOutput(); err != nil {
		t.Fatalf("%v: %s", err, out)
	}
	if err := os.Symlink(testenv.Path(t, "build", "test", "real-query"), filepath.Join(s.build, "test", "real-query")); err != nil {
		t.Fatal(err)
	}
	if _, err := s.entryPoints(t.Context()); err != nil {
		t.Fatal(err)
	}
	if len(s.faults) < 100 {
		t.Errorf("%d faults with an interposer that hooks nothing", len(s.faults))
	}
}

// If the packages cannot be fetched, the error names the addresses that were tried.
func TestFetchNamesWhatWasTried(t *testing.T) {
	f := &fetcher{dir: t.TempDir(), mirror: "file:///nonexistent/mirror"}
	_, _, err := f.driver(t.Context(), "550")
	if err == nil || !strings.Contains(err.Error(), "apt-get") || !strings.Contains(err.Error(), "/nonexistent/mirror") {
		t.Errorf("got %v", err)
	}
}
