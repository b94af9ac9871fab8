package main

import (
	"crypto/sha256"
	"encoding/hex"
	"fmt"
	"hash"
	"os"
	"regexp"
	"strconv"
	"unsafe"

	"medusa/internal/cuda"
	"medusa/test/enginekit"
	"medusa/test/programs"
)

var describe = enginekit.StandIn("simgpu_describe")

const rounds = 3

// serve replays the program's graphs on changing inputs and returns the hash of all memory that the engine can see, after
// every replay, and of the device's account of the graphs.
func (p *program) serve() (string, error) {
	sum := &account{Hash: sha256.New(), verbose: p.e.verbose}
	for gi := range p.plan.Graphs {
		p.describe(sum, gi)
	}
	if err := p.describeKernels(sum); err != nil {
		return "", err
	}
	for round := 1; round <= rounds; round++ {
		for i := range p.plan.Graphs {
			gi := i
			if round%2 == 0 {
				gi = len(p.plan.Graphs) - 1 - i
			}
			// Another stream each time, on which the inputs arrive and the outputs leave: a launch on any other would show.
			stream := p.e.streams[(gi+round)%len(p.e.streams)]
			if err := p.replay(sum, gi, round, stream); err != nil {
				return "", fmt.Errorf("round %d graph %d: %w", round, gi, err)
			}
			if err := p.observe(sum, stream); err != nil {
				return "", fmt.Errorf("round %d graph %d: %w", round, gi, err)
			}
		}
	}
	return hex.EncodeToString(sum.Sum(nil)), nil
}

// account is the hash and, if the user wants to see the place at which two processes part, the data that went into it.
type account struct {
	hash.Hash
	verbose bool
}

func (a *account) part(format string, args ...any) {
	if a.verbose {
		fmt.Fprintf(os.Stderr, "%x after %s\n", a.Sum(nil)[:6], fmt.Sprintf(format, args...))
	}
}

// window is an access-policy window in the device's description: its base, and the launch's own parameter of the same memory.
var window = regexp.MustCompile(`window=0x[0-9a-f]+`)

// nameWindow puts the buffer in place of a window's base, which is another address in every process. The engine does not know to
// which addresses a restored start moved the buffers of the capture phase.
func (p *program) nameWindow(text []byte) []byte {
	base, _ := strconv.ParseUint(string(text[len("window="):]), 0, 64)
	for i := range p.plan.Buffers {
		if b := &p.plan.Buffers[i]; !b.Capture && b.Kind != programs.Block && base >= p.addr[i] && base < p.addr[i]+b.Size {
			return fmt.Appendf(nil, "window=buffer %d+%d", i, base-p.addr[i])
		}
	}
	return []byte("window=capture phase")
}

// describe adds facts that no output shows: edge data, node attributes. Devices without this function add no facts.
func (p *program) describe(sum *account, gi int) {
	if !describe.Present() {
		return
	}
	text := make([]byte, 1<<16)
	n, _ := describe.Invoke(uintptr(p.exec(gi)), uintptr(unsafe.Pointer(&text[0])), uintptr(len(text)))
	text = window.ReplaceAllFunc(text[:min(int(n), len(text))], p.nameWindow)
	sum.Write(text)
	sum.part("graph %d\n%s", gi, text)
}

// describeKernels adds attributes that were set on kernels of libraries, which later launches rely on.
func (p *program) describeKernels(sum *account) error {
	used := map[[2]any]bool{}
	for _, g := range p.plan.Graphs {
		for _, o := range g.Ops {
			used[[2]any{o.Module, o.Kernel}] = used[[2]any{o.Module, o.Kernel}] || o.Kind == programs.Kernel
		}
	}
	for i := range p.modules {
		for k := range p.plan.Modules[i].Attrs {
			a := &p.plan.Modules[i].Attrs[k]
			if !a.OnKernel || !used[[2]any{i, a.Kernel}] {
				continue
			}
			v, err := p.kernelAttribute(i, a)
			if err != nil {
				return err
			}
			fmt.Fprintln(sum, i, a.Kernel, a.ID, v)
			sum.part("kernel attribute %d of %s: %d", a.ID, a.Kernel, v)
		}
	}
	return nil
}

// replay launches one graph. If it waits for an event, its inputs arrive on another stream, and if it records
// one, its result is read behind that event on another stream: an event that is not the engine's own would show.
func (p *program) replay(sum *account, gi, round int, stream cuda.Stream) error {
	g := &p.plan.Graphs[gi]
	side := p.e.side
	for i := range p.plan.Buffers {
		if b := &p.plan.Buffers[i]; b.Input && p.addr[i] != 0 {
			data, err := p.e.room.bytes(4 * programs.Words)
			if err != nil {
				return err
			}
			copy(data, words(p.plan.Seed, i, round))
			if err := cuda.CopyToDeviceAsync(cuda.DevicePtr(p.addr[i]), data, stream); err != nil {
				return err
			}
		}
	}
	for k := range g.Ops {
		if op := &g.Ops[k]; op.Kind == programs.Wait {
			copy(p.e.staging, words(p.plan.Seed, op.Writes()[0], round))
			if err := cuda.CopyToDeviceAsync(cuda.DevicePtr(p.addr[op.Writes()[0]]), p.e.staging[:4*programs.Words], side); err != nil {
				return err
			}
			if err := p.events[op.Event].Record(side); err != nil {
				return err
			}
		}
	}
	if err := p.launchGraph(gi, stream); err != nil {
		return err
	}
	for k := range g.Ops {
		if op := &g.Ops[k]; op.Kind == programs.Record && len(op.Reads()) > 0 {
			if err := p.events[op.Event].Synchronize(); err != nil {
				return err
			}
			if err := cuda.CopyToHostAsync(p.e.staging[:4*programs.Words], cuda.DevicePtr(p.addr[op.Reads()[0]]), side); err != nil {
				return err
			}
			if err := side.Synchronize(); err != nil {
				return err
			}
			sum.Write(p.e.staging[:4*programs.Words])
			sum.part("round %d graph %d event %d", round, gi, op.Event)
		}
	}
	return nil
}

// launchGraph launches a restored graph by the session, as engines do.
func (p *program) launchGraph(gi int, stream cuda.Stream) error {
	if p.e.restored != nil {
		return p.e.restored[p.first+int64(gi)].Launch(stream)
	}
	return p.execs[gi].Launch(stream)
}

// observe adds all memory of the prefix, as it is on the stream behind the launch.
func (p *program) observe(sum *account, stream cuda.Stream) error {
	type piece struct {
		what string
		data []byte
	}
	var pieces []piece
	read := func(from uint64, size int, what string) error {
		data, err := p.e.room.bytes(size)
		if err == nil {
			data = data[:size]
			err = cuda.CopyToHostAsync(data, cuda.DevicePtr(from), stream)
		}
		if err != nil {
			return fmt.Errorf("read %s: %w", what, err)
		}
		pieces = append(pieces, piece{what, data})
		return nil
	}
	for i := range p.plan.Buffers {
		b := &p.plan.Buffers[i]
		if b.Capture || p.addr[i] == 0 || p.holdsPointers(i) {
			continue
		}
		if err := read(p.addr[i], int(b.Size), fmt.Sprintf("buffer %d", i)); err != nil {
			return err
		}
	}
	for i := range p.modules {
		if p.plan.Modules[i].Late {
			continue
		}
		if err := read(p.modules[i].state, 4*programs.Words, fmt.Sprintf("variables of module %d", i)); err != nil {
			return err
		}
	}
	if err := stream.Synchronize(); err != nil {
		return err
	}
	for _, piece := range pieces {
		sum.Write(piece.data)
		sum.part("%s", piece.what)
	}
	return nil
}

// holdsPointers says that a buffer's bytes differ from process to process.
func (p *program) holdsPointers(i int) bool {
	for _, t := range p.plan.Tables {
		if t.Buffer == i {
			return true
		}
	}
	return false
}
