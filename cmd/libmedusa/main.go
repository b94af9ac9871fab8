// Command libmedusa is package restore as a C library (-buildmode=c-shared), for engines that are not written in Go. libmedusa.h
// documents it and abi.c has its entry points. Each function here only wraps the Session method of the same name.
package main

/*
#include "libmedusa.h"
#include <stdlib.h>

extern char **environ;
extern void abi_say(char *text);

static inline int call_run(medusa_run run, void *arg) { return run(arg); }
static inline int call_step(medusa_step step, void *arg, const char *label) { return step(arg, label); }
static inline int call_collective(medusa_collective_call make, void *arg, const void *call, uint64_t stream) { return make(arg, call, stream); }
static inline int64_t call_self_test(medusa_self_test test, void *arg, void *out, size_t capacity)
{
	return test(arg, out, capacity);
}
*/
import "C"

import (
	"errors"
	"fmt"
	"os"
	"strings"
	"unsafe"

	"medusa/artifacts"
	"medusa/internal/contract"
	"medusa/internal/cuda"
	"medusa/internal/garbage"
	"medusa/restore"
)

// The engine waits for a restore, which is over before a collection is due.
func init() { garbage.Seldom() }

func main() {}

// The one session, and its graphs. abi.c lets one thread in at a time.
var (
	session  *restore.Session
	restored []*restore.Graph
)

var errClosed = errors.New("call libmedusa: no session is open, or one is open already (call medusa_session_open first, and once)")

// say gives the calling thread a text for medusa_session_error.
func say(text string) { C.abi_say(C.CString(text)) }

// fail stores the text of err and returns its number.
func fail(err error) C.int {
	say(err.Error())
	var f *restore.Fallback
	switch {
	case errors.Is(err, errClosed):
		return C.MEDUSA_MISUSE
	case errors.As(err, &f):
		return C.MEDUSA_FALLBACK
	}
	return C.MEDUSA_FAILED
}

// with runs f on the session and returns f's number, or the number of f's error. It turns a panic into an error, because a panic
// must not unwind into C. If the process is to end, it ends here: engines do not tell this from other errors.
func with(f func(s *restore.Session) (int, error)) C.int {
	if session == nil {
		return fail(errClosed)
	}
	var n int
	// mutant: panics at the C ABI
	err := session.Guard(func() (err error) {
		n, err = f(session)
		return err
	})
	if exit := session.Exit(); exit != nil {
		os.Exit(exit.Code)
	}
	if err != nil {
		return fail(err)
	}
	return C.int(n)
}

// readEnvironment copies the environment of the C library into Go. Go itself reads the block behind the process's arguments, and
// a process that has changed its title (setproctitle, as vLLM's engine does) has overwritten that block.
func readEnvironment() error {
	var pairs []string
	for p := C.environ; p != nil && *p != nil; p = (**C.char)(unsafe.Add(unsafe.Pointer(p), unsafe.Sizeof(*p))) {
		pairs = append(pairs, C.GoString(*p))
	}
	for _, pair := range pairs {
		name, value, _ := strings.Cut(pair, "=")
		if now, ok := os.LookupEnv(name); name != "" && (!ok || now != value) {
			if err := os.Setenv(name, value); err != nil {
				return fmt.Errorf("read environment: %w", err)
			}
		}
	}
	return nil
}

//export goSessionOpen
func goSessionOpen() (code C.int) {
	defer func() {
		if v := recover(); v != nil {
			code = fail(fmt.Errorf("open session: panic: %v", v))
		}
	}()
	if session != nil {
		return fail(errClosed)
	}
	if err := readEnvironment(); err != nil {
		return fail(err)
	}
	s, err := restore.FromEnv(restore.Hooks{End: os.Exit})
	var exit *restore.Exit
	if errors.As(err, &exit) {
		os.Exit(exit.Code)
	}
	if err != nil {
		return fail(err)
	}
	session = s
	return C.int(s.Run())
}

//export goSessionRestoring
func goSessionRestoring() C.int {
	return with(func(s *restore.Session) (int, error) {
		if s.Restoring() {
			return 1, nil
		}
		return 0, nil
	})
}

//export goSessionPhase
func goSessionPhase(phase *C.char) C.int {
	return with(func(s *restore.Session) (int, error) {
		s.Phase(C.GoString(phase))
		return 0, nil
	})
}

//export goSessionIdentify
func goSessionIdentify(keys, values **C.char, n C.size_t) C.int {
	return with(func(s *restore.Session) (int, error) {
		var id artifacts.Identity
		v := unsafe.Slice(values, n)
		for i, k := range unsafe.Slice(keys, n) {
			id = append(id, artifacts.Factor{Key: C.GoString(k), Value: C.GoString(v[i])})
		}
		return 0, s.Identify(id)
	})
}

//export goSessionKVBytes
func goSessionKVBytes(bytes *C.uint64_t) C.int {
	return with(func(s *restore.Session) (int, error) {
		size, given := s.KVBytes()
		if !given {
			return 0, nil
		}
		*bytes = C.uint64_t(size)
		return 1, nil
	})
}

//export goSessionElastic
func goSessionElastic(least, block C.uint64_t) C.int {
	return with(func(s *restore.Session) (int, error) {
		s.Elastic(uint64(least), uint64(block))
		return 0, nil
	})
}

//export goSessionKVRoom
func goSessionKVRoom(bytes *C.uint64_t) C.int {
	return with(func(s *restore.Session) (int, error) {
		room, known := s.KVRoom()
		if !known {
			return 0, nil
		}
		*bytes = C.uint64_t(room)
		return 1, nil
	})
}

//export goSessionWorkspace
func goSessionWorkspace(bytes *C.uint64_t) C.int {
	return with(func(s *restore.Session) (int, error) {
		*bytes = C.uint64_t(s.Workspace())
		return 0, nil
	})
}

// caller is the caller's array, as far as n elements need it.
func caller[T any](to *T, capacity C.size_t, n int) []T {
	return unsafe.Slice(to, min(uint64(capacity), uint64(n)))
}

//export goSessionTriggers
func goSessionTriggers(batches *C.int64_t, capacity C.size_t) C.int {
	return with(func(s *restore.Session) (int, error) {
		all := s.Triggers()
		to := caller(batches, capacity, len(all))
		for i := range to {
			to[i] = C.int64_t(all[i])
		}
		return len(all), nil
	})
}

//export goSessionTrigger
func goSessionTrigger(run C.medusa_run, arg unsafe.Pointer) C.int {
	return with(func(s *restore.Session) (int, error) {
		return 0, s.Trigger(func() error {
			if code := C.call_run(run, arg); code != 0 {
				return fmt.Errorf("run engine's layer: the function returned %d", int(code))
			}
			return nil
		})
	})
}

//export goSessionTensor
func goSessionTensor(name *C.char, addr *C.uint64_t) C.int {
	return with(func(s *restore.Session) (int, error) {
		at, ok := s.Tensor(C.GoString(name))
		if !ok {
			return 0, nil
		}
		*addr = C.uint64_t(at)
		return 1, nil
	})
}

//export goSessionNote
func goSessionNote(name *C.char, out unsafe.Pointer, capacity C.size_t) C.int {
	return with(func(s *restore.Session) (int, error) {
		value, ok := s.Note(C.GoString(name))
		if !ok {
			return 0, fmt.Errorf("find note %s: the engine left no such note", C.GoString(name))
		}
		copy(caller((*byte)(out), capacity, len(value)), value)
		return len(value), nil
	})
}

//export goSessionGraphs
func goSessionGraphs(out *C.struct_medusa_session_graph, capacity C.size_t) C.int {
	return with(func(s *restore.Session) (int, error) {
		if f := s.Fallback(); f != nil {
			return 0, f
		}
		if restored == nil {
			graphs, err := s.Graphs()
			if err != nil {
				return 0, err
			}
			restored = graphs
		}
		graphs := caller(out, capacity, len(restored))
		for i := range graphs {
			to, g := &graphs[i], restored[i]
			to.batch, to.exec = C.int64_t(g.Batch()), C.uint64_t(g.Built())
			label := unsafe.Slice((*byte)(unsafe.Pointer(&to.label)), len(to.label))
			clear(label)
			copy(label[:len(label)-1], g.Label())
		}
		return len(restored), nil
	})
}

//export goSessionKernels
func goSessionKernels(out *C.char, capacity C.size_t) C.int {
	return with(func(s *restore.Session) (int, error) {
		var text strings.Builder
		for _, k := range s.Kernels() {
			fmt.Fprintf(&text, "%s\t%s\t%s\n", k.How, k.Name, k.Module)
		}
		copy(caller((*byte)(unsafe.Pointer(out)), capacity, text.Len()), text.String())
		return text.Len(), nil
	})
}

//export goSessionProvide
func goSessionProvide(beforeReplay, eager C.medusa_step, arg unsafe.Pointer) C.int {
	return with(func(s *restore.Session) (int, error) {
		s.Provide(restore.Steps{BeforeReplay: stepOf("before_replay", beforeReplay, arg), Eager: stepOf("eager", eager, arg)})
		return 0, nil
	})
}

// stepOf returns the engine's function as a step, or nil if the engine offers none.
func stepOf(name string, step C.medusa_step, arg unsafe.Pointer) func(label string) error {
	if step == nil {
		return nil
	}
	return func(label string) error {
		text := C.CString(label)
		defer C.free(unsafe.Pointer(text))
		if code := C.call_step(step, arg, text); code != 0 {
			return fmt.Errorf("run engine's %s step: it returned %d", name, int(code))
		}
		return nil
	}
}

//export goSessionCollectives
func goSessionCollectives(call C.medusa_collective_call, arg unsafe.Pointer) C.int {
	return with(func(s *restore.Session) (int, error) {
		s.ProvideCollectives(func(c *contract.Collective, stream cuda.Stream) error {
			made := (*contract.Collective)(C.malloc(C.size_t(unsafe.Sizeof(*c))))
			defer C.free(unsafe.Pointer(made))
			*made = *c
			if code := C.call_collective(call, arg, unsafe.Pointer(made), C.uint64_t(stream)); code != 0 {
				return fmt.Errorf("make a collective call: the engine's function returned %d", int(code))
			}
			return nil
		})
		return 0, nil
	})
}

//export goSessionConnect
func goSessionConnect(step C.medusa_run, arg unsafe.Pointer) C.int {
	return with(func(s *restore.Session) (int, error) {
		s.ProvideConnect(func() error {
			if code := C.call_run(step, arg); code != 0 {
				return fmt.Errorf("connect the calls of graphs: the engine's function returned %d", int(code))
			}
			return nil
		})
		return 0, nil
	})
}

//export goSessionWeights
func goSessionWeights() C.int {
	return with(func(s *restore.Session) (int, error) { return int(s.Weights()), nil })
}

//export goSessionAlone
func goSessionAlone() C.int {
	return with(func(s *restore.Session) (int, error) {
		if s.Alone() {
			return 1, nil
		}
		return 0, nil
	})
}

//export goSessionStandIn
func goSessionStandIn(call unsafe.Pointer, stream C.uint64_t) C.int {
	return with(func(s *restore.Session) (int, error) {
		return 0, s.StandIn((*contract.Collective)(call), cuda.Stream(stream))
	})
}

//export goSessionRefuse
func goSessionRefuse(reason *C.char) C.int {
	return with(func(s *restore.Session) (int, error) {
		err := s.Refuse(errors.New(C.GoString(reason)))
		restored = nil
		return 0, err
	})
}

//export goSessionUsable
func goSessionUsable(graph C.size_t, exec *C.uint64_t) C.int {
	return with(func(*restore.Session) (int, error) {
		// mutant: which of the restored graphs is launched
		if uint64(graph) >= uint64(len(restored)) {
			return 0, fmt.Errorf("use graph %d: only %d are restored", uint64(graph), len(restored))
		}
		g := restored[graph]
		if err := g.Usable(); err != nil {
			say(err.Error())
			return 0, nil
		}
		*exec = C.uint64_t(g.Built())
		return 1, nil
	})
}

//export goSessionSleep
func goSessionSleep() C.int {
	return with(func(s *restore.Session) (int, error) { return 0, s.Sleep() })
}

//export goSessionWake
func goSessionWake(same C.int) C.int {
	return with(func(s *restore.Session) (int, error) {
		awake, err := s.Wake(same != 0)
		if awake {
			return 1, err
		}
		return 0, err
	})
}

//export goSessionInvalidate
func goSessionInvalidate(reason *C.char) C.int {
	return with(func(s *restore.Session) (int, error) {
		s.Invalidate(errors.New(C.GoString(reason)))
		return 0, nil
	})
}

// selfTestBytes bounds the output of a self test.
const selfTestBytes = 16 << 20

//export goSessionReady
func goSessionReady(test C.medusa_self_test, arg unsafe.Pointer) C.int {
	return with(func(s *restore.Session) (int, error) {
		if test == nil {
			return 0, s.Ready(nil)
		}
		return 0, s.Ready(func() ([]byte, error) {
			buffer := C.malloc(selfTestBytes)
			defer C.free(buffer)
			n := C.call_self_test(test, arg, buffer, selfTestBytes)
			if n < 0 || n > selfTestBytes {
				return nil, fmt.Errorf("run engine's self test: the function returned %d", int64(n))
			}
			return C.GoBytes(buffer, C.int(n)), nil
		})
	})
}

//export goSessionFailed
func goSessionFailed(result C.int) C.int {
	return with(func(s *restore.Session) (int, error) { return 0, s.Failed(cuda.Result(result)) })
}

//export goSessionClose
func goSessionClose() C.int {
	code := with(func(s *restore.Session) (int, error) { return 0, s.Close() })
	if code == 0 {
		session, restored = nil, nil
	}
	return code
}
