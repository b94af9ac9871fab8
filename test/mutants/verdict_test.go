package main

import (
	"os"
	"os/exec"
	"path/filepath"
	"testing"
)

// Real tests of each kind: the words of go test -json about them are not this package's to decide.
func TestVerdicts(t *testing.T) {
	dir := t.TempDir()
	for name, text := range map[string]string{
		"go.mod": "module x\n\ngo 1.23\n",
		"x_test.go": `package x

import ("fmt"; "os"; "testing"; "time")

func TestPass(t *testing.T) { fmt.Println("panic: of another process") }
func TestFail(t *testing.T) { fmt.Print("no end of line"); t.Run("sub", func(t *testing.T) { t.Error("x") }) }
func TestPanic(t *testing.T) { panic("x") }
func TestExit(t *testing.T) { os.Exit(1) }
func TestHang(t *testing.T) { time.Sleep(time.Minute) }
func TestSkip(t *testing.T) { t.Skip("x") }
`,
		"bad/x_test.go": "package bad\n\nvar x int = \"\"\n",
	} {
		path := filepath.Join(dir, name)
		if err := os.MkdirAll(filepath.Dir(path), 0o755); err != nil {
			t.Fatal(err)
		}
		if err := os.WriteFile(path, []byte(text), 0o644); err != nil {
			t.Fatal(err)
		}
	}
	for _, c := range []struct {
		pkg, test string
		want      verdict
		fails     bool
	}{
		{".", "TestPass", missed, false},
		{".", "TestFail", caught, false},
		{".", "TestPass|TestFail", caught, false},
		{".", "TestFail/sub", caught, false},
		{".", "TestPanic", crashed, false},
		{".", "TestFail|TestPanic", crashed, false},
		{".", "TestExit", crashed, false},
		{".", "TestHang", timedOut, false},
		{".", "TestSkip", broken, true},
		{".", "TestPass|TestNone", broken, true},
		{".", "TestNone", broken, true},
		{"./bad", "TestPass", broken, true},
	} {
		cmd := exec.Command("go", "test", "-json", "-vet=off", "-timeout=1s", "-run", pattern(c.test), c.pkg)
		cmd.Dir = dir
		output, _ := cmd.CombinedOutput() // the verdict says how it ended
		v, err := judge(output, c.test)
		if v != c.want || (err != nil) != c.fails {
			t.Errorf("%s %s: %s, %v, want %s", c.pkg, c.test, v, err, c.want)
		}
	}
}

// A test that fails without a mutant cannot catch one. It is run once.
func TestBaseline(t *testing.T) {
	dir := t.TempDir()
	for name, text := range map[string]string{
		"go.mod":    "module x\n\ngo 1.23\n",
		"x_test.go": "package x\n\nimport \"testing\"\n\nfunc TestPass(t *testing.T) {}\nfunc TestFail(t *testing.T) { t.Error(1) }\n",
	} {
		if err := os.WriteFile(filepath.Join(dir, name), []byte(text), 0o644); err != nil {
			t.Fatal(err)
		}
	}
	var b baseline
	if err := b.passes(t.Context(), attempt{0, ".", "TestPass"}, dir); err != nil {
		t.Error(err)
	}
	if err := b.passes(t.Context(), attempt{0, ".", "TestFail"}, dir); err == nil {
		t.Error("a test that fails without a mutant is taken")
	}
	if err := os.RemoveAll(dir); err != nil {
		t.Fatal(err)
	}
	if err := b.passes(t.Context(), attempt{0, ".", "TestPass"}, dir); err != nil {
		t.Errorf("second run: %v", err)
	}
}

func TestJudgePython(t *testing.T) {
	for _, c := range []struct {
		output string
		want   verdict
	}{
		{".\n---\nRan 1 test in 0.000s\n\nOK\n", missed},
		{"F\nAssertionError: 1 != 2\nRan 1 test in 0.001s\n\nFAILED (failures=1)\n", caught},
		{"E\nKeyError: 1\nRan 1 test in 0.001s\n\nFAILED (errors=1)\n", crashed},
		{"Ran 1 test in 0.000s\n\nOK (skipped=1)\n", broken},
		{"Ran 0 tests in 0.000s\n\nOK\n", broken},
		{"Segmentation fault\n", broken},
	} {
		if got, err := judgePython([]byte("\n" + c.output)); got != c.want || (err != nil) != (got == broken) {
			t.Errorf("%q is %s, want %s (%v)", c.output, got, c.want, err)
		}
	}
}

// The verdict on a program in C follows from the lines that its checks print.
func TestVerdictsOfChecks(t *testing.T) {
	exit := exec.Command("false").Run()
	for _, c := range []struct {
		output string
		failed error
		want   verdict
	}{
		{"ptx: 9 checks, 0 failures\n", nil, missed},
		{"a_test.c:12: x == y: 3\nptx: 9 checks, 1 failures\n", exit, caught},
		{"b_test.c:12: x == y: 3\nptx: 9 checks, 1 failures\n", exit, missed},
		{"AddressSanitizer: a_test.c:12\n", exit, crashed},
	} {
		if v, err := judgeChecks([]byte(c.output), c.failed, "a_test.c"); v != c.want || err != nil {
			t.Errorf("%q: %s, %v, want %s", c.output, v, err, c.want)
		}
	}
}
