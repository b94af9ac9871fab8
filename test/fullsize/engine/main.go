// Command fullsize-engine fills a device as a large model does: weights in allocations beyond 4 GiB, a KV cache of one allocation, and many
// graphs whose kernels write all over both. No other part of that memory is touched.
//
// In: the numbers of graphs and of nodes in each, and the environment that `medusa` sets. Out: one line with a hash of the
// contents of memory after the graphs. Fails: with the driver's error.
package main

import (
	"crypto/sha256"
	_ "embed"
	"encoding/hex"
	"errors"
	"flag"
	"fmt"
	"os"
	"runtime"

	"medusa/artifacts"
	"medusa/internal/cuda"
	"medusa/restore"
	"medusa/runners/reference/marks"
	"medusa/test/enginekit"
	"medusa/test/enginekit/start"
)

//go:embed put.ptx
var image []byte

const (
	weightBytes = 5 << 30 // of each allocation
	tableBytes  = 4 << 20
)

type engine struct {
	session       *restore.Session
	graphs, nodes int
	stream        cuda.Stream
	module        cuda.Module
	put           cuda.Function
	args          *cuda.Args
	weights       [4]cuda.DevicePtr
	cache, table  cuda.DevicePtr
	cacheBytes    uint64
	profiled      uint64
	native        []cuda.GraphExec
}

func main() {
	runtime.LockOSThread()
	e := &engine{}
	flag.IntVar(&e.graphs, "graphs", 1, "graphs")
	flag.IntVar(&e.nodes, "nodes", 1, "kernels in each")
	flag.Uint64Var(&e.profiled, "kv", 1<<30, "bytes of the KV cache, if nobody gives them")
	flag.Parse()
	if err := e.run(); err != nil {
		start.End("fullsize-engine", err)
	}
}

func (e *engine) run() (err error) {
	if e.session, err = restore.FromEnv(restore.Hooks{End: os.Exit}); err != nil {
		return err
	}
	defer e.session.Close()
	if err := e.load(); err != nil {
		return err
	}
	marks.Begin(marks.WarmUp)
	restored, err := start.Graphs(e.session.Graphs, e.capture)
	if err != nil {
		return err
	}
	marks.Begin(marks.Ready)
	if err := e.session.Ready(nil); err != nil {
		return err
	}
	for g := range e.graphs {
		if restored != nil {
			err = restored[int64(g+1)].Launch(e.stream)
		} else {
			err = e.native[g].Launch(e.stream)
		}
		if err != nil {
			return fmt.Errorf("launch graph %d: %w", g, err)
		}
	}
	sum, err := e.sum()
	if err == nil {
		fmt.Printf("restored=%v sum=%s\n", restored != nil, sum)
	}
	return err
}

func (e *engine) load() error {
	if _, _, err := enginekit.Open(); err != nil {
		return err
	}
	marks.Begin(marks.Structure)
	identified := e.session.Identify(artifacts.Identity{{Key: "engine.name", Value: "fullsize"}, {Key: "model.config", Value: fmt.Sprint(e.graphs, e.nodes)}})
	if identified != nil && !errors.As(identified, new(*restore.Fallback)) {
		return identified
	}
	e.args = cuda.NewArgs()
	var err error
	if e.module, err = cuda.ModuleLoadData(append(image, 0)); err != nil {
		return err
	}
	if err := errors.Join(enginekit.Streams(&e.stream), enginekit.Functions(e.module, map[string]*cuda.Function{"put": &e.put})); err != nil {
		return err
	}
	marks.Begin(marks.Weights)
	for i := range e.weights {
		if e.weights[i], err = cuda.MemAlloc(weightBytes); err != nil {
			return err
		}
	}
	marks.Begin(marks.KVCache)
	return e.allocateCache()
}

func (e *engine) allocateCache() (err error) {
	var given bool
	if e.cacheBytes, given = e.session.KVBytes(); !given {
		free, total, err := cuda.MemInfo()
		if err != nil {
			return err
		}
		e.cacheBytes = e.profiled
		marks.Profiled(marks.KVProfile{KVBytes: e.cacheBytes, Total: total, FreeBefore: free, FreeAfter: free, Utilization: 0.9, ProfileTokens: 1})
	}
	e.cache, err = cuda.MemAlloc(e.cacheBytes)
	return err
}

// capture makes the graphs, with a table of their own.
func (e *engine) capture() (err error) {
	if e.table, err = cuda.MemAlloc(tableBytes); err != nil {
		return err
	}
	if err := cuda.CopyToDevice(e.table, make([]byte, tableBytes)); err != nil {
		return err
	}
	if err := cuda.CopyToDevice(e.table+tableBytes-4, []byte{1, 2, 3, 4}); err != nil {
		return err
	}
	marks.Begin(marks.Capture)
	for g := range e.graphs {
		marks.Graph(fmt.Sprintf("g%d", g), g+1)
		exec, err := enginekit.Capture(e.stream, cuda.CaptureGlobal, func() error { return e.issue(g) })
		if err != nil {
			return fmt.Errorf("capture graph %d: %w", g, err)
		}
		e.native = append(e.native, exec)
	}
	return nil
}

// places are the words that node k of graph g writes and reads: spread over the whole cache, the weights and the table, to their last words.
func (e *engine) places(g, k int) (to, from cuda.DevicePtr) {
	i := uint64(g*e.nodes + k)
	last := uint64(e.graphs*e.nodes - 1)
	spread := func(size uint64) cuda.DevicePtr { return cuda.DevicePtr((size - 4) / max(last, 1) * i &^ 3) }
	to = e.cache + spread(e.cacheBytes)
	if i == last {
		to = e.cache + cuda.DevicePtr(e.cacheBytes-4)
	}
	if from = e.weights[i%uint64(len(e.weights))] + spread(weightBytes); k == 0 {
		from = e.cache + cuda.DevicePtr(e.cacheBytes/2)&^3
	}
	return to, from
}

func (e *engine) issue(g int) error {
	for k := range e.nodes {
		to, from := e.places(g, k)
		if k == e.nodes/2 {
			from = e.table + tableBytes - 4
		}
		if err := e.put.Launch(cuda.Dim3{1, 1, 1}, cuda.Dim3{1, 1, 1}, 0, e.stream, e.args.Reset().Ptr(to).Ptr(from).I32(g+7*k+1)); err != nil {
			return err
		}
	}
	return nil
}

// sum is a hash of all words that the graphs write.
func (e *engine) sum() (string, error) {
	if err := e.stream.Synchronize(); err != nil {
		return "", err
	}
	h, word := sha256.New(), make([]byte, 4)
	for g := range e.graphs {
		for k := range e.nodes {
			to, _ := e.places(g, k)
			if err := cuda.CopyToHost(word, to); err != nil {
				return "", err
			}
			h.Write(word)
		}
	}
	return hex.EncodeToString(h.Sum(nil)), nil
}
