// Command zoo is a test engine: a few small graphs with properties that the reference engine's lack (forks and joins, memset
// and memcpy nodes, pointer tables in device memory, reused addresses, a module that loads late), started, restored and
// verified like any engine.
//
// In: the environment that `medusa materialize` and `medusa restore` set. Out: one line of JSON with the outputs of a fixed
// series of replays, which must not depend on how the graphs came to be. Fails: with the driver's error, exit code 1.
package main

import (
	"encoding/json"
	"errors"
	"fmt"
	"os"
	"runtime"
	"strconv"

	"medusa/artifacts"
	"medusa/internal/cuda"
	"medusa/restore"
	"medusa/runners/reference/marks"
	"medusa/test/enginekit"
	"medusa/test/enginekit/start"
)

func main() {
	runtime.LockOSThread()
	begin := run
	if os.Getenv(peerSide) != "" {
		begin = beThePeer
	} else if n := workers(); n > 0 {
		begin = func() error { return startWorkers(n) }
	}
	if err := begin(); err != nil {
		var exit *restore.Exit
		if errors.As(err, &exit) {
			os.Exit(exit.Code)
		}
		fmt.Fprintf(os.Stderr, "zoo: %v\n", err)
		os.Exit(exitCode(err))
	}
}

func run() error {
	session, err := restore.FromEnv(restore.Hooks{End: os.Exit})
	if err != nil {
		return err
	}
	defer session.Close()
	z := &zoo{session: session}
	switch os.Getenv("ZOO_HARSH") {
	case "prepared":
		session.Provide(restore.Steps{BeforeReplay: z.harsh.beforeReplay})
	case "stepped":
		session.Provide(restore.Steps{Eager: z.harshStep})
	}
	if os.Getenv("ZOO_SESSIONS") == "1" {
		return z.sessions()
	}
	if err := z.start(); err != nil {
		return err
	}
	out, err := z.serve()
	if err != nil {
		return err
	}
	marks.CallLog("served")
	held, err := enginekit.Held()
	if err != nil {
		return err
	}
	err = json.NewEncoder(os.Stdout).Encode(result{Restored: z.restored != nil, Output: out, Held: held})
	if os.Getenv("ZOO_STAYS") == "1" { // as a server does, until it is ended
		select {}
	}
	return err
}

type result struct {
	Restored bool   `json:"restored"`
	Output   string `json:"output"`         // hex SHA-256 of all outputs in order
	Held     string `json:"held,omitempty"` // the interposer's account of memory
}

// factors is the engine's identity.
func factors() artifacts.Identity {
	return artifacts.Identity{{Key: "engine.name", Value: "zoo"}, {Key: "model.config", Value: envOr("ZOO_MODEL", "plain")}}
}

// load is the first half of a cold start, in the order that docs/architecture.md gives: the part that Medusa leaves to the engine.
func (z *zoo) load() error {
	if err := z.open(); err != nil {
		return err
	}
	marks.Begin(marks.Structure)
	identified := marks.Medusa(func() error { return z.session.Identify(append(factors(), z.checkpoint.open(z.session)...)) })
	if z.session.Exit() != nil {
		return identified
	}
	if err := z.allocate(); err != nil {
		return err
	}
	if err := errors.Join(z.ask(os.Getenv("ZOO_ASKS")), z.peer.open(z)); err != nil {
		return err
	}
	marks.Begin(marks.KVCache)
	if err := z.sizeCache(identified); err != nil {
		return err
	}
	marks.Begin(marks.Weights)
	return z.fillWeights()
}

// start is a cold start.
func (z *zoo) start() error {
	if err := z.load(); err != nil {
		return err
	}
	if err := z.trigger(); err != nil {
		return err
	}
	z.begin(marks.WarmUp)
	if os.Getenv("ZOO_DIRTY") != "" { // work that the recorded start did not do
		if err := cuda.CopyToDevice(z.scratch, []byte{1}); err != nil {
			return err
		}
	}
	ask := func() (graphs []*restore.Graph, err error) {
		err = marks.Medusa(func() error {
			graphs, err = z.session.Graphs()
			if err == nil && graphs != nil && os.Getenv("ZOO_REFUSES") != "" { // an engine that cannot use the restored graphs
				graphs, err = nil, z.session.Refuse(errors.New("other graphs than expected"))
			}
			return err
		})
		return graphs, err
	}
	var err error
	if z.restored, err = start.Graphs(ask, z.captureAll); err != nil {
		return err
	}
	if err := z.trigger(); err != nil { // again, in a native start that checks
		return err
	}
	if os.Getenv("MEDUSA_RUN") == "check-restored" {
		if err := z.harsh.fill(); err != nil {
			return err
		}
	}
	marks.CallLog("ready")
	marks.Begin(marks.Ready)
	return z.session.Ready(func() ([]byte, error) {
		out, err := z.serve()
		return []byte(out), err
	})
}

func (z *zoo) begin(p marks.Phase) {
	marks.Begin(p)
	z.session.Phase(string(p))
}

// workspace is the memory that a profile forward would leave. This engine has none, and looks only whether the number comes back.
const workspace = 4096

// used is how much of the cache the graphs read and write.
const used = 2 * size

func (z *zoo) sizeCache(identified error) error {
	bytes, given := z.session.KVBytes()
	// mutant: engine that outgrows its KV cache
	if given && bytes < used { // of an artifact: no run that records gives so little
		err := z.session.Refuse(fmt.Errorf("size KV cache: %d bytes, its graphs use %d", bytes, used))
		if z.session.Exit() != nil {
			return err
		}
		given = false
	}
	if !given || identified != nil {
		free, total, err := cuda.MemInfo()
		if err != nil {
			return err
		}
		bytes = 8 << 20
		if fixed, err := strconv.ParseUint(os.Getenv("ZOO_CACHE"), 10, 64); err == nil && fixed != 0 {
			bytes = fixed
		}
		marks.Profiled(marks.KVProfile{KVBytes: bytes, Total: total, FreeBefore: free, FreeAfter: free, Utilization: 0.9, ProfileTokens: elements,
			Workspace: workspace})
	} else if got := z.session.Workspace(); got != workspace {
		return fmt.Errorf("size workspace: %d bytes, the profile said %d", got, workspace)
	}
	var err error
	z.cache, err = cuda.MemAlloc(bytes)
	if err != nil {
		return err
	}
	marks.Named(marks.Tensor{Name: "cache", Addr: z.cache, Size: bytes, Role: marks.KV, DType: marks.F32})
	return cuda.CopyToDevice(z.cache, make([]byte, bytes))
}

// trigger loads the late module the way the skipped warm-up would: by launching its kernel.
func (z *zoo) trigger() error {
	for range z.session.Triggers() {
		if err := marks.Medusa(func() error { return z.session.Trigger(z.firstLayer) }); err != nil {
			if z.session.Exit() != nil {
				return err
			}
			return nil // the session has said why and starts natively
		}
	}
	return nil
}

func (z *zoo) firstLayer() error {
	z.library.triggered = true
	err := z.product()
	z.library.triggered = false
	if err != nil {
		return err
	}
	if os.Getenv("ZOO_TRIGGER") == "off" { // an engine whose first layer does not use the late module
		return nil
	}
	if err := z.loadLate(); err != nil {
		return err
	}
	return z.launch(z.late, z.args.Reset().Ptr(z.scratch).F32(1).I32(elements))
}

func envOr(name, def string) string {
	if v := os.Getenv(name); v != "" {
		return v
	}
	return def
}

// ask makes calls that memory at exact addresses cannot serve: "ipc" and "peer" go on without an answer, "ipc-or-exit" does not
// if the memory is to lie in a region.
func (z *zoo) ask(what string) error {
	switch what {
	case "peer":
		_ = cuda.Context(0).EnablePeerAccess(0)
	case "ipc", "ipc-or-exit":
		_, err := z.input.IpcHandle()
		if err != nil && what == "ipc-or-exit" && os.Getenv("MEDUSA_EXACT") != "" {
			return err
		}
	}
	return nil
}
