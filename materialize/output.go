package materialize

import (
	"bytes"
	"errors"
	"fmt"
	"io"
	"os"
	"path/filepath"
	"regexp"
	"strings"

	"medusa/internal/private"
)

// output takes an engine's output of one run: all of it goes to a file, and a message about a failed run shows the first line
// that reads like an error, and the last lines.
type output struct {
	file  *os.File
	err   error  // why the file is not complete
	tail  []byte // the last bytes
	line  []byte // the beginning of a line that has no end yet
	lines int    // that have ended
	first errorLine
}

// errorLine is a line that reads like an error. More may follow it for long: a server reports that an engine process failed
// after that process has said why.
type errorLine struct {
	text   string
	number int  // from 1; 0: there is none
	named  bool // an exception or a panic, which says more than a line with the word "error"
}

const (
	tailSize = 4096
	lineSize = 1024 // the rest of a longer line is not looked at
)

var (
	namedError = regexp.MustCompile(`\b[A-Za-z_][\w.]*(Error|Exception)\b: \S|^(panic|fatal error): |\bCUDA_ERROR_\w+`)
	anyError   = regexp.MustCompile(`(?i)\b(error|fatal|panic|failed|segmentation fault)\b`)
	noError    = regexp.MustCompile(`\b(WARNING|WARN|INFO|DEBUG|\w*Warning)\b`)
)

func newOutput(path string) *output {
	f, err := private.Replace(path)
	return &output{file: f, err: err}
}

func (o *output) Write(p []byte) (int, error) {
	if o.err == nil {
		_, o.err = o.file.Write(p) // a full disk ends the file, not the engine
	}
	o.tail = append(o.tail, p...)
	if n := len(o.tail) - tailSize; n > 0 {
		o.tail = append(o.tail[:0], o.tail[n:]...)
	}
	for rest := p; len(rest) > 0; {
		head, after, ended := bytes.Cut(rest, []byte("\n"))
		o.line = append(o.line, head[:min(len(head), lineSize-len(o.line))]...)
		if rest = after; ended {
			o.endLine()
		}
	}
	return len(p), nil
}

func (o *output) endLine() {
	o.lines++
	text := string(bytes.TrimSpace(o.line))
	o.line = o.line[:0]
	if o.first.named || noError.MatchString(text) {
		return
	}
	if named := namedError.MatchString(text); named || o.first.number == 0 && anyError.MatchString(text) {
		o.first = errorLine{text, o.lines, named}
	}
}

func (o *output) close() error {
	if len(o.line) > 0 {
		o.endLine()
	}
	if o.file == nil {
		return o.err
	}
	return errors.Join(o.err, o.file.Close())
}

// failed describes the failure of a run whose output this is.
func (o *output) failed(run string, err error) *EngineError {
	e := &EngineError{Run: run, Err: err, First: o.first.text, Line: o.first.number, Output: string(bytes.TrimSpace(o.tail))}
	if o.err == nil {
		e.File = o.file.Name()
	}
	return e
}

// keepOutput copies the whole output of the engine that an error is about, if it printed any, to a file that stays, and lets the error
// name it. Without a path the file is in the system's temporary directory.
func keepOutput(err error, path string) error {
	var failed *EngineError
	if !errors.As(err, &failed) || failed.File == "" {
		return err
	}
	from := failed.File
	failed.File = ""
	if info, statErr := os.Stat(from); statErr == nil && info.Size() > 0 {
		failed.File, _ = copyFile(path, from) // the last lines are in the message in any case
	}
	return err
}

// copyFile returns the absolute path of the copy.
func copyFile(path, from string) (string, error) {
	in, err := os.Open(from)
	if err != nil {
		return "", err
	}
	defer in.Close()
	create := func() (*os.File, error) { return private.Replace(path) }
	if path == "" {
		create = func() (*os.File, error) { return os.CreateTemp("", "medusa-*"+logSuffix) }
	}
	out, err := create()
	if err != nil {
		return "", err
	}
	if _, err := io.Copy(out, in); err != nil {
		return "", errors.Join(err, out.Close())
	}
	if err := out.Close(); err != nil {
		return "", err
	}
	return filepath.Abs(out.Name())
}

// EngineError is a run of the engine that did not end as it should.
type EngineError struct {
	Run    string
	Err    error
	First  string // the first line that reads like an error, and its number
	Line   int
	Output string // the end of its output
	File   string // all that it printed; empty: it could not be kept
}

func (e *EngineError) Error() string {
	s := fmt.Sprintf("run engine (%s): %v", e.Run, e.Err)
	if e.First != "" && !strings.HasSuffix(e.Output, e.First) { // the last line is seen anyway
		s += fmt.Sprintf("\nfirst error, in line %d of its output: %s", e.Line, e.First)
	}
	if e.File != "" {
		s += "\nall of its output: " + e.File
	}
	if e.Output != "" {
		s += "\nits last lines:\n" + e.Output
	}
	return s
}

func (e *EngineError) Unwrap() error { return e.Err }
