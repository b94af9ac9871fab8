// Package starts compares the times of an engine's starts: native, with parts of the start left out, and restored.
//
// In: an engine's command and an artifact for it. The command ends by itself, or is a server, which is stopped once it is healthy
// or has answered a request. Out: medians and spreads of its phases, each start's ratio to the native one of the same round, and
// the imports and waits of the processes of one more start (package waterfall). Fails: if an engine fails or reports no phases
// (package restore writes them to MEDUSA_STATUS), or if a start is native and not restored.
package starts

import (
	"bytes"
	"cmp"
	"context"
	"errors"
	"fmt"
	"io"
	"os"
	"os/exec"
	"path/filepath"
	"runtime"
	"slices"
	"strings"
	"syscall"
	"time"

	"medusa/internal/contract"
	"medusa/internal/measure"
	"medusa/interpose"
	"medusa/restore/pool"
	"medusa/restore/starts/waterfall"
	"medusa/restore/status"
	"medusa/restore/supervisor"
)

// The two modes that are always measured, and the one with a pool.
const (
	Native   = "native"
	Restored = "restored"
	Pooled   = "pool"
)

// Mode is a way to start the engine: its command with arguments added.
type Mode struct {
	Name string
	Args []string
	pool string // a pool's socket or file
}

func (m Mode) restored() bool { return m.Name == Restored || m.Name == Pooled }

// Options select the measurements.
type Options struct {
	Argv     []string // the engine's command
	Artifact string
	Library  string // libmedusa_interpose.so
	Modes    []Mode // besides native and restored
	Rounds   int    // measured rounds of all modes, after one that is not measured
	Health   string // of a server: the address that answers 200 once it serves; empty: the engine ends by itself
	Request  string // of a server: the address of a first request once it is healthy
	Body     string // JSON of this request
	Pool     string // socket or file of a pool: restored starts with it are measured, too
	Record   bool   // one more start of each mode, whose processes are recorded
	Log      io.Writer
}

// Stage is a phase of the start: its median in milliseconds, and the distance between the quartiles as a share of the median.
type Stage struct {
	Name         string  `json:"name"`
	Milliseconds float64 `json:"ms"`
	Spread       float64 `json:"spread"`
}

// Start has the measurements of one mode. Ratio is the native start's total divided by this one's, round by round.
type Start struct {
	Mode        string  `json:"mode"`
	Stages      []Stage `json:"stages"`
	Total       Stage   `json:"total"`
	Ratio       float64 `json:"native_over_this"`
	RatioSpread float64 `json:"ratio_spread"`
}

// Report is the result of one measurement.
type Report struct {
	Device  string   `json:"device"`
	Machine string   `json:"machine"`
	Command []string `json:"command"`
	Rounds  int      `json:"rounds"`
	Starts  []Start  `json:"starts"`

	Recorded []waterfall.Start `json:"-"`
}

// Run starts the engine in every mode, one after the other and round after round.
func Run(ctx context.Context, o Options) (*Report, error) {
	dir, err := os.MkdirTemp("", "medusa-bench-")
	if err != nil {
		return nil, fmt.Errorf("bench: %w", err)
	}
	defer os.RemoveAll(dir)
	modes := append([]Mode{{Name: Native}}, o.Modes...)
	modes = append(modes, Mode{Name: Restored})
	if o.Pool != "" {
		modes = append(modes, Mode{Name: Pooled, pool: o.Pool})
	}
	seen := make([]*measured, len(modes))
	for i := range seen {
		seen[i] = &measured{stages: map[string]measure.Times{}}
	}
	out := &Report{Machine: machine(), Command: o.Argv, Rounds: o.Rounds}
	for round := -1; round < o.Rounds; round++ {
		for i, m := range modes {
			st, err := o.start(ctx, m, filepath.Join(dir, "status.json"))
			if err != nil {
				return nil, fmt.Errorf("bench %s start: %w", m.Name, err)
			}
			out.Device = st.Device
			if round >= 0 {
				seen[i].add(st)
			}
		}
	}
	for i, m := range modes {
		out.Starts = append(out.Starts, seen[i].summary(m.Name, seen[0]))
		if o.Record {
			recorded, err := o.record(ctx, m, filepath.Join(dir, m.Name))
			if err != nil {
				return nil, fmt.Errorf("bench %s start, recorded: %w", m.Name, err)
			}
			out.Recorded = append(out.Recorded, recorded)
		}
	}
	return out, nil
}

// start runs the engine once and reads its phases, which begin with the start of its command. The last phase of a server ends
// when the server is healthy.
func (o *Options) start(ctx context.Context, m Mode, path string) (*status.Status, error) {
	if err := os.Remove(path); err != nil && !os.IsNotExist(err) {
		return nil, err
	}
	ctx, stop := context.WithCancel(ctx)
	defer stop()
	began := time.Now()
	served := make(chan served, 1)
	if o.Health != "" {
		go func() {
			if s, ok := o.serve(ctx, began); ok {
				served <- s
			}
			stop()
		}()
	}
	err := o.engine(ctx, m, path, began)
	var moments []status.Phase
	if o.Health != "" {
		select {
		case s := <-served: // it was stopped here, so its exit code has no meaning
			if s.err != nil {
				return nil, s.err
			}
			moments = s.moments
		default:
			return nil, errors.Join(errors.New("the server ended before it was healthy"), err)
		}
	} else if err != nil {
		return nil, err
	}
	st, err := status.Read(path)
	if err != nil {
		return nil, fmt.Errorf("%w (does the engine support Medusa?)", err)
	}
	if (st.Status == status.Restored) != m.restored() {
		return nil, fmt.Errorf("the start was %s: %s %s", st.Status, st.Reason, st.Detail)
	}
	if m.pool != "" && st.Pool != pool.Yes {
		return nil, fmt.Errorf("the start was not the pool's: %s", st.Pool)
	}
	// A server may listen before its engine is ready.
	st.Phases = append(st.Phases, moments...)
	slices.SortStableFunc(st.Phases, func(a, b status.Phase) int { return cmp.Compare(a.Began, b.Began) })
	if len(st.Phases) < 2 {
		return nil, fmt.Errorf("the engine marked %d phases", len(st.Phases))
	}
	return st, nil
}

// engine runs the engine's command until it ends or the context does.
func (o *Options) engine(ctx context.Context, m Mode, path string, began time.Time) error {
	argv := append(append([]string{}, o.Argv...), m.Args...)
	said := &ending{log: o.Log}
	if m.restored() {
		code, err := supervisor.Run(ctx, supervisor.Options{Artifact: supervisor.Choice{Ref: o.Artifact}, Argv: argv, Library: o.Library,
			Status: path, Pool: m.pool, Env: contract.Start{Began: began}.Environ(), Stdout: said, Stderr: said})
		if err == nil && code != 0 {
			err = said.explain(fmt.Errorf("the engine ended with exit code %d", code))
		}
		return err
	}
	cmd := exec.CommandContext(ctx, argv[0], argv[1:]...)
	cmd.Cancel = func() error { return cmd.Process.Signal(syscall.SIGTERM) }
	cmd.Env = append(interpose.WithPlugin(os.Environ(), o.Library), contract.Start{Status: path, Began: began}.Environ()...)
	cmd.Stdout, cmd.Stderr = said, said
	if err := cmd.Run(); err != nil {
		return said.explain(err)
	}
	return nil
}

// ending passes on the engine's output, and keeps its last line.
type ending struct {
	log  io.Writer // nil: it goes nowhere
	line []byte
}

const longestLine = 1024

func (e *ending) Write(p []byte) (int, error) {
	e.line = append(e.line, p...)
	if i := bytes.LastIndexByte(bytes.TrimRight(e.line, "\n"), '\n'); i >= 0 {
		e.line = e.line[i+1:]
	}
	e.line = e.line[max(0, len(e.line)-longestLine):]
	if e.log == nil {
		return len(p), nil
	}
	return e.log.Write(p)
}

func (e *ending) explain(err error) error {
	if line := bytes.TrimSpace(e.line); len(line) > 0 {
		return fmt.Errorf("%w: %s", err, line)
	}
	return err
}

// measured collects the rounds of one mode.
type measured struct {
	names  []string
	stages map[string]measure.Times
	total  measure.Times
}

func (m *measured) add(st *status.Status) {
	for i, p := range st.Phases[:len(st.Phases)-1] {
		if _, known := m.stages[p.Name]; !known {
			m.names = append(m.names, p.Name)
		}
		m.stages[p.Name] = append(m.stages[p.Name], seconds(st.Phases[i+1].Began-p.Began))
	}
	m.total = append(m.total, seconds(st.Phases[len(st.Phases)-1].Began-st.Phases[0].Began))
}

func seconds(s float64) time.Duration { return time.Duration(s * 1e9) }

func (m *measured) summary(mode string, native *measured) Start {
	s := Start{Mode: mode, Total: stage("total", m.total)}
	for _, name := range m.names {
		s.Stages = append(s.Stages, stage(name, m.stages[name]))
	}
	s.Ratio, s.RatioSpread = measure.Ratios(native.total, m.total)
	return s
}

func stage(name string, t measure.Times) Stage {
	s := Stage{Name: name, Milliseconds: float64(t.Median()) / 1e6}
	if t.Median() > 0 {
		s.Spread = t.Spread()
	}
	return s
}

// machine names the processor, and the number of processors.
func machine() string {
	model := runtime.GOARCH
	if text, err := os.ReadFile("/proc/cpuinfo"); err == nil {
		for line := range strings.Lines(string(text)) {
			if key, value, ok := strings.Cut(line, ":"); ok && strings.TrimSpace(key) == "model name" {
				model = strings.TrimSpace(value)
				break
			}
		}
	}
	return fmt.Sprintf("%s, %d processors", model, runtime.NumCPU())
}
