// Command engine executes random programs as one engine: a batch of them shares a process, a start and an artifact.
//
// In: the programs' seeds, and the environment that `medusa materialize` and `medusa restore` set. Out: one line a program,
// its seed and the hash of everything that its replays left, which must not depend on how the graphs came to be. Fails:
// with the driver's error and the program's seed, exit code 1.
package main

import (
	"bytes"
	"errors"
	"flag"
	"fmt"
	"os"
	"runtime"
	"strconv"
	"strings"

	"medusa/artifacts"
	"medusa/internal/cuda"
	"medusa/restore"
	"medusa/runners/reference/marks"
	"medusa/test/enginekit"
	"medusa/test/enginekit/start"
	"medusa/test/programs"
)

func main() {
	runtime.LockOSThread()
	seeds := flag.String("seeds", "", "seeds of the programs, separated by commas")
	verbose := flag.Bool("verbose", false, "say what went into the hash")
	flag.Parse()
	if err := run(*seeds, *verbose); err != nil {
		start.End("programs", err)
	}
}

// engine is the state that the programs of a batch share.
type engine struct {
	session *restore.Session
	context cuda.Context
	streams []cuda.Stream // of captures; the first launches
	side    cuda.Stream
	marks   []cuda.Event
	next    int
	pool    cuda.MemoryPool
	room    room
	staging []byte
	other   chan func()
	verbose bool

	programs []*program
	witness  witness
	restored map[int64]*restore.Graph
}

// program is one plan in execution.
type program struct {
	e       *engine
	plan    *programs.Plan
	first   int64 // batch size of the first graph: it tells graphs of a batch apart
	addr    []uint64
	home    uint64 // memory that maps are made over before they move
	modules []module
	events  []cuda.Event
	execs   []cuda.GraphExec

	scribbled [][]byte // host memory that changes after the graphs are made
}

func run(seeds string, verbose bool) error {
	e := &engine{verbose: verbose, other: make(chan func())}
	batch := int64(1)
	for _, s := range strings.Split(seeds, ",") {
		seed, err := strconv.ParseUint(s, 10, 64)
		if err != nil {
			return fmt.Errorf("read seeds: %w", err)
		}
		plan := programs.New(seed)
		e.programs = append(e.programs, &program{e: e, plan: plan, first: batch, addr: make([]uint64, len(plan.Buffers)),
			modules: make([]module, len(plan.Modules)), execs: make([]cuda.GraphExec, len(plan.Graphs))})
		batch += int64(len(plan.Graphs))
	}
	var err error
	if e.session, err = restore.FromEnv(restore.Hooks{End: os.Exit}); err != nil {
		return err
	}
	if err := e.start(seeds); err != nil {
		return errors.Join(err, e.session.Close())
	}
	out, err := e.serve()
	os.Stdout.Write(out)
	// Objects of a restore are given back by the calls that go with how they were made.
	return errors.Join(err, e.session.Close())
}

func (e *engine) open() error {
	device, context, err := enginekit.Open()
	if err != nil {
		return err
	}
	e.context, e.streams, e.marks = context, make([]cuda.Stream, 3), make([]cuda.Event, 64)
	if err := enginekit.Streams(&e.streams[0], &e.streams[1], &e.streams[2], &e.side); err != nil {
		return err
	}
	for i := range e.marks {
		if err := enginekit.Events(&e.marks[i]); err != nil {
			return err
		}
	}
	if e.staging, err = e.room.bytes(4 * programs.Words); err != nil {
		return err
	}
	go e.otherThread()
	e.pool, err = device.DefaultMemPool()
	return err
}

// otherThread runs the functions given to elsewhere, on a thread of its own.
func (e *engine) otherThread() {
	runtime.LockOSThread()
	for f := range e.other {
		f()
	}
}

func (e *engine) elsewhere(f func() error) error {
	done := make(chan error)
	e.other <- func() { done <- errors.Join(e.context.SetCurrent(), f()) }
	return <-done
}

// each calls f for every program and names the one that fails.
func (e *engine) each(f func(p *program) error) error {
	for _, p := range e.programs {
		if err := f(p); err != nil {
			return fmt.Errorf("program %d: %w", p.plan.Seed, err)
		}
	}
	return nil
}

// start is a cold start in the order that docs/architecture.md gives.
func (e *engine) start(seeds string) error {
	if err := e.open(); err != nil {
		return err
	}
	marks.Begin(marks.Structure)
	// A mismatch is the session's affair: it warns, and the start goes on natively.
	err := e.session.Identify([]artifacts.Factor{{Key: "engine.name", Value: "programs"}, {Key: "engine.args", Value: seeds}})
	if e.session.Exit() != nil {
		return err
	}
	if err := errors.Join(e.witness.prefix(e), e.each((*program).prefix)); err != nil {
		return err
	}
	marks.Begin(marks.KVCache)
	if _, given := e.session.KVBytes(); !given {
		free, total, err := cuda.MemInfo()
		if err != nil {
			return err
		}
		marks.Profiled(marks.KVProfile{KVBytes: 1 << 30, Total: total, FreeBefore: free, FreeAfter: free, Utilization: 0.5, ProfileTokens: 1})
	}
	marks.Begin(marks.Weights)
	if err := e.trigger(); err != nil {
		return err
	}
	marks.Begin(marks.WarmUp)
	if e.restored, err = start.Graphs(e.session.Graphs, func() error { return errors.Join(e.witness.capture(e), e.each((*program).captureAll)) }); err != nil {
		return err
	}
	marks.Begin(marks.Ready)
	return e.session.Ready(e.serve)
}

// trigger loads the modules that the skipped warm-up would have loaded.
func (e *engine) trigger() error {
	for _, batch := range e.session.Triggers() {
		if batch == witnessBatch {
			if err := e.session.Trigger(func() error { return e.witness.launch(e.streams[0]) }); err != nil && e.session.Exit() != nil {
				return err
			}
			continue
		}
		for _, p := range e.programs {
			if batch < p.first || batch >= p.first+int64(len(p.plan.Graphs)) {
				continue
			}
			if err := e.session.Trigger(func() error { return p.loadAll(true) }); err != nil {
				if e.session.Exit() != nil {
					return err
				}
				return nil // the session has said why and starts natively
			}
		}
	}
	return nil
}

func (e *engine) serve() ([]byte, error) {
	var out bytes.Buffer
	if err := e.witness.serve(e, e.restored); err != nil {
		return nil, err
	}
	err := e.each(func(p *program) error {
		sum, err := p.serve()
		fmt.Fprintln(&out, p.plan.Seed, sum)
		return err
	})
	return out.Bytes(), err
}

func (p *program) exec(gi int) cuda.GraphExec {
	if p.e.restored != nil {
		return p.e.restored[p.first+int64(gi)].Built()
	}
	return p.execs[gi]
}

func (p *program) loadAll(late bool) error {
	for i := range p.modules {
		if p.plan.Modules[i].Late != late {
			continue
		}
		if err := p.load(i); err != nil {
			return err
		}
	}
	return nil
}

// prefix is the part of a start that a restored process makes as well.
func (p *program) prefix() error {
	if err := p.allocate(false); err != nil {
		return err
	}
	home, err := cuda.MemAlloc(4096)
	if err != nil {
		return err
	}
	p.home = uint64(home)
	if err := put(p.home, make([]byte, 4096)); err != nil {
		return err
	}
	if err := p.loadAll(false); err != nil {
		return err
	}
	for i := range p.modules {
		if m := &p.plan.Modules[i]; !m.Late {
			if err := errors.Join(p.variables(i, m.Written == 1), p.attributes(i, false)); err != nil {
				return fmt.Errorf("module %d: %w", i, err)
			}
		}
	}
	for range p.plan.Events {
		event, err := cuda.EventCreate(cuda.EventDisableTiming)
		if err != nil {
			return err
		}
		p.events = append(p.events, event)
	}
	return p.initialise(false)
}

// captureAll is warm-up and capture: a restored start skips them.
func (p *program) captureAll() error {
	if err := errors.Join(p.allocate(true), p.loadAll(true)); err != nil {
		return err
	}
	for i := range p.modules {
		if err := errors.Join(p.variables(i, p.plan.Modules[i].Written == 2), p.attributes(i, true)); err != nil {
			return fmt.Errorf("module %d: %w", i, err)
		}
	}
	if err := p.initialise(true); err != nil {
		return err
	}
	for i := range p.plan.Maps {
		if m := &p.plan.Maps[i]; m.Stored {
			data, err := p.tensorMap(m)
			if err == nil {
				err = put(p.addr[m.Buffer], data[:mapBytes])
			}
			if err != nil {
				return fmt.Errorf("tensor map %d: %w", i, err)
			}
		}
	}
	late, err := cuda.EventCreate(cuda.EventDisableTiming)
	if err != nil {
		return err
	}
	p.events = append(p.events, late)
	for gi := range p.plan.Graphs {
		if err := p.instantiate(gi); err != nil {
			return fmt.Errorf("graph %d: %w", gi, err)
		}
	}
	p.events = p.events[:p.plan.Events]
	for _, data := range p.scribbled {
		data[0] ^= 1
	}
	for _, i := range p.plan.FreeLate {
		if err := p.release(i); err != nil {
			return err
		}
	}
	for i := range p.plan.Buffers {
		if b := &p.plan.Buffers[i]; b.Capture && b.Kind == programs.Block {
			marks.Block(cuda.DevicePtr(p.addr[i]), b.Size, true)
			if b.Temporary {
				marks.Block(cuda.DevicePtr(p.addr[i]), b.Size, false)
			}
		}
	}
	return nil
}

func (p *program) instantiate(gi int) error {
	marks.Graph(programs.Label(p.plan.Seed, gi), int(p.first)+gi)
	g := &p.plan.Graphs[gi]
	graph, err := p.build(g)
	if err != nil {
		return err
	}
	defer graph.Destroy()
	if p.execs[gi], err = graph.Instantiate(g.Flags); err != nil {
		return err
	}
	return p.execs[gi].Upload(p.e.streams[0])
}
