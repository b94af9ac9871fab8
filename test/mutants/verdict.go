package main

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"os/exec"
	"path/filepath"
	"regexp"
	"strings"
	"sync"
	"time"
)

// verdict is a mutant's fate.
type verdict string

const (
	caught   verdict = "caught"    // the named test reported a failure
	crashed  verdict = "CRASHED"   // its process ended before it could
	timedOut verdict = "TIMED OUT" // or never
	missed   verdict = "MISSED"    // it passed
	broken   verdict = "BROKEN"    // the mutant could not be tried
)

// event is a line of go test -json.
type event struct{ Action, Test, Output string }

// runTest runs a test in a tree and says how it ended.
func runTest(ctx context.Context, dir, pkg, test string) (verdict, error) {
	switch filepath.Ext(pkg) {
	case ".py":
		return runPython(ctx, filepath.Join(dir, pkg), test)
	case ".c":
		return runInterpreter(ctx, dir, filepath.Clean(pkg))
	}
	out, err := command(ctx, dir, "go", "test", "-json", "-count=1", "-vet=off", "-run", pattern(test), pkg).CombinedOutput()
	var exit *exec.ExitError
	if err != nil && !errors.As(err, &exit) {
		return broken, err
	}
	return judge(out, test)
}

// pythonLimit is go test's default limit.
const pythonLimit = 10 * time.Minute

// runPython runs one test of a file of Python's unittest: Class.test_name.
func runPython(ctx context.Context, file, test string) (verdict, error) {
	ctx, cancel := context.WithTimeout(ctx, pythonLimit)
	defer cancel()
	cmd := command(ctx, filepath.Dir(file), "python3", "-B", "-m", "unittest", strings.TrimSuffix(filepath.Base(file), ".py")+"."+test)
	out, err := cmd.CombinedOutput()
	var exit *exec.ExitError
	switch {
	case ctx.Err() != nil:
		return timedOut, nil
	case err != nil && !errors.As(err, &exit):
		return broken, err
	}
	return judgePython(out)
}

// pythonEnd is the last line of a run: an exception other than AssertionError counts as an error.
var pythonEnd = regexp.MustCompile(`(?m)^(?:OK|FAILED \((failures|errors)=\d+\))$`)

// judgePython reads unittest's output.
func judgePython(output []byte) (verdict, error) {
	end := pythonEnd.FindSubmatch(output)
	switch {
	case end == nil || !bytes.Contains(output, []byte("\nRan 1 test in ")):
		return broken, fmt.Errorf("its test did not run, or was skipped:\n%s", output)
	case string(end[1]) == "failures":
		return caught, nil
	case string(end[1]) == "errors":
		return crashed, nil
	}
	return missed, nil
}

// runInterpreter runs the program of the interpreter's tests. A check of the file has to fail, and not only those of others.
func runInterpreter(ctx context.Context, dir, file string) (verdict, error) {
	if out, err := command(ctx, dir, "make", "-s", "build/test/ptx_test").CombinedOutput(); err != nil {
		return broken, fmt.Errorf("its test does not build:\n%s", out)
	}
	ctx, cancel := context.WithTimeout(ctx, pythonLimit)
	defer cancel()
	out, err := command(ctx, dir, "build/test/ptx_test").CombinedOutput()
	if ctx.Err() != nil {
		return timedOut, nil
	}
	return judgeChecks(out, err, file)
}

// judgeChecks reads the lines of failed checks, which begin with the file.
func judgeChecks(output []byte, failed error, file string) (verdict, error) {
	var exit *exec.ExitError
	switch {
	case failed != nil && !errors.As(failed, &exit):
		return broken, failed
	case regexp.MustCompile(`(?m)^` + regexp.QuoteMeta(file) + `:\d+: `).Match(output):
		return caught, nil
	case failed != nil && !bytes.Contains(output, []byte(" checks, ")):
		return crashed, nil
	}
	return missed, nil
}

// judge reads the events of a run.
func judge(output []byte, test string) (verdict, error) {
	ended := map[string]string{} // how each test ended, by its name
	complete := false            // the process has said how all of them ended
	for _, line := range bytes.Split(output, []byte("\n")) {
		var e event
		if json.Unmarshal(line, &e) != nil {
			continue // of a build
		}
		switch {
		case strings.Contains(e.Output, "[build failed]"), strings.Contains(e.Output, "[setup failed]"):
			return broken, fmt.Errorf("its test does not build:\n%s", output)
		case strings.HasPrefix(e.Output, "panic: test timed out after "):
			return timedOut, nil
		case e.Test == "":
			complete = complete || e.Output == "PASS\n" || e.Output == "FAIL\n"
		case e.Action == "pass" || e.Action == "fail" || e.Action == "skip":
			ended[e.Test] = e.Action
		}
	}
	if !complete {
		return crashed, nil
	}
	v := missed
	for _, one := range strings.Split(test, "|") {
		want := regexp.MustCompile(`^(?:` + strings.ReplaceAll(one, "/", `)/(?:`) + `)$`)
		n := 0
		for name, how := range ended {
			if !want.MatchString(name) {
				continue
			}
			n++
			switch how {
			case "fail":
				v = caught
			case "skip":
				return broken, fmt.Errorf("%s is skipped", name)
			}
		}
		if n == 0 {
			return broken, fmt.Errorf("no test ended that matches %s:\n%s", one, output)
		}
	}
	return v, nil
}

// pattern is the argument of -run: one expression a level of tests.
func pattern(test string) string {
	levels := strings.Split(test, "/")
	for i, l := range levels {
		levels[i] = "^(" + l + ")$"
	}
	return strings.Join(levels, "/")
}

// baseline knows which tests pass without a mutant.
type baseline struct {
	lock sync.Mutex
	ran  map[attempt]func() error
}

// attempt is a test in one of its scopes.
type attempt struct {
	scope     int
	pkg, test string
}

// passes runs the test once, in the first copy of the tree that asks.
func (b *baseline) passes(ctx context.Context, a attempt, dir string) error {
	b.lock.Lock()
	if b.ran == nil {
		b.ran = map[attempt]func() error{}
	}
	run, ok := b.ran[a]
	if !ok {
		run = sync.OnceValue(func() error {
			v, err := runTest(ctx, dir, a.pkg, a.test)
			if err == nil && v != missed {
				err = fmt.Errorf("without a mutant it is %s, too", v)
			}
			return err
		})
		b.ran[a] = run
	}
	b.lock.Unlock()
	return run()
}
