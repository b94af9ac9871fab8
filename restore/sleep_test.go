package restore

import (
	"errors"
	"fmt"
	"slices"
	"strings"
	"testing"

	"medusa/graphir"
	"medusa/internal/cuda"
)

const mappedKVBytes = 2 << 20

// mapped makes the KV cache of an artifact one that can be unmapped, and the memory of its graphs so large that it is seen.
func mapped(s *graphir.Spec) {
	s.Allocations[allocKV].Kind, s.Allocations[allocKV].Size = graphir.AllocVMM, mappedKVBytes
	s.Allocations[allocTmp].Size = 4 << 20
	s.Tensors = append(s.Tensors, graphir.Tensor{Name: "state", Role: graphir.RoleInput, DType: graphir.U8, Size: 64, Shape: []int64{64}, Hi: 9,
		At: graphir.Pointer{Index: allocTmp, Offset: 2 << 20}})
}

// keeps makes the engine of an artifact one that keeps its scratch memory for a while.
func keeps(s *graphir.Spec) {
	mapped(s)
	s.Allocations[allocScratch].Live = true
	s.Sequence = slices.DeleteFunc(s.Sequence, func(step graphir.Step) bool { return step.Free })
}

// A graph is used after a sleep only if everything is as before. The keys name the engine's acts while its graphs are asleep.
func TestSleep(t *testing.T) {
	for how, want := range map[string]string{
		"nothing":     "usable",
		"unmaps":      "usable",
		"frees":       "usable",                            // memory that no graph refers to
		"moves":       "usable",                            // other memory has the graphs' place
		"takes":       "wake graphs: allocate graph-owned", // all of the memory
		"changes":     "check memory that stays unchanged", // contents that graphs keep
		"disturbs":    "check graph decode-16",             // memory of the engine that a graph reads
		"gives":       "the engine has freed memory",       // addresses that were asleep
		"unannounced": "the engine has freed memory",       // an unmap that the session was not told of
	} {
		t.Run(how, func(t *testing.T) {
			change := mapped
			if how == "frees" {
				change = keeps
			}
			o := start{deviations: "sleeps,mapped," + how, change: change, env: restoreEnv}.run(t)
			if o.exit != 0 {
				t.Fatalf("exit %d", o.exit)
			}
			_, said, _ := strings.Cut(o.stdout, "woke: ")
			if !strings.HasPrefix(said, want) && !strings.Contains(strings.SplitN(said, "\n", 2)[0], want) {
				t.Errorf("%q, want %s", said, want)
			}
			if strings.Count(o.stdout, "served: correct") != 1 && want != "usable" || strings.Count(o.stdout, "served: correct") != 4 && want == "usable" {
				t.Errorf("served %q", o.stdout)
			}
		})
	}
}

func (e *engine) allocateKV() (cuda.DevicePtr, error) {
	if !e.deviates("mapped") {
		return cuda.MemAlloc(e.kvBytes)
	}
	at, err := cuda.MemAddressReserve(mappedKVBytes, 0, 0, 0)
	if err == nil {
		err = mapKV(at)
	}
	return at, err
}

func mapKV(at cuda.DevicePtr) error {
	here := cuda.MemLocation{Type: cuda.MemLocationDevice}
	physical, err := cuda.MemCreate(mappedKVBytes, &cuda.MemAllocationProp{Type: cuda.MemAllocationPinned, Location: here}, 0)
	if err != nil {
		return err
	}
	return errors.Join(at.Map(mappedKVBytes, 0, physical, 0), physical.Release(),
		at.SetAccess(mappedKVBytes, []cuda.MemAccessDesc{{Location: here, Flags: cuda.MemAccessReadWrite}}))
}

func (e *engine) freeKV() error {
	switch {
	case !e.deviates("mapped"):
		return e.kv.Free()
	case e.deviates("gives"):
		return nil
	}
	return errors.Join(e.kv.Unmap(mappedKVBytes), e.kv.AddressFree(mappedKVBytes))
}

// rest puts the graphs asleep three times, and serves after each sleep. It stops early if a sleep leaves the graphs unusable.
func (e *engine) rest() error {
	if !e.deviates("sleeps") {
		return nil
	}
	for i := range byte(3) {
		if err := e.write("state", i); err != nil {
			return err
		}
		why, err := e.sleepOnce()
		if err != nil {
			return err
		}
		fmt.Println("woke:", why)
		if why != "usable" {
			return nil
		}
		if got, err := e.read("state"); err != nil || got != i {
			return fmt.Errorf("the engine's state is %d after a sleep, was %d, %v", got, i, err)
		}
		for _, g := range e.graphs {
			e.execs[g.Batch()] = g.Built()
		}
		if err := e.serve(); err != nil {
			return err
		}
	}
	return nil
}

func (e *engine) write(tensor string, value byte) error {
	at, _ := e.session.Tensor(tensor)
	return cuda.CopyToDevice(at, []byte{value})
}

func (e *engine) read(tensor string) (byte, error) {
	at, _ := e.session.Tensor(tensor)
	var value [1]byte
	err := cuda.CopyToHost(value[:], at)
	return value[0], err
}

func (e *engine) sleepOnce() (string, error) {
	if e.scratch != 0 {
		if err := e.scratch.Free(); err != nil {
			return "", err
		}
		e.scratch = 0
	}
	before, _, err := cuda.MemInfo()
	if err != nil {
		return "", err
	}
	if !e.deviates("unannounced") {
		if err := e.session.Sleep(); err != nil {
			return "", err
		}
		if after, _, err := cuda.MemInfo(); err != nil || after <= before || e.graphs[0].Built() != 0 || e.graphs[0].Usable() == nil {
			return "", fmt.Errorf("asleep: %d bytes are free, %d before, graph %#x, %v", after, before, e.graphs[0].Built(), err)
		}
	}
	var others []cuda.DevicePtr
	take := func(size uint64) error {
		p, err := cuda.MemAlloc(size)
		if err == nil {
			others = append(others, p)
		}
		return err
	}
	switch {
	case e.deviates("moves"):
		err = errors.Join(take(16), take(4<<20))
	case e.deviates("takes"):
		for size := uint64(1 << 40); size >= 1; size /= 2 {
			for take(size) == nil {
			}
		}
	case e.deviates("unmaps"), e.deviates("unannounced"), e.deviates("gives"):
		if err = e.kv.Unmap(mappedKVBytes); err != nil {
			return "", err
		}
		if e.deviates("gives") {
			err = e.kv.AddressFree(mappedKVBytes)
			break
		}
		if awake, err := e.session.Wake(true); err != nil || awake == e.deviates("unmaps") {
			return "", fmt.Errorf("awake without its memory: %v, %v", awake, err)
		}
		err = mapKV(e.kv)
	}
	if err != nil {
		return "", err
	}
	awake, err := e.session.Wake(true)
	if err != nil || !awake {
		return "", fmt.Errorf("awake: %v, %v", awake, err)
	}
	switch {
	case e.deviates("changes"):
		err = cuda.CopyToDevice(cuda.DevicePtr(e.session.restored.Memory.Base[allocMagic]), []byte{1})
	case e.deviates("disturbs"):
		err = cuda.CopyToDevice(e.in+2048, []byte{1})
	}
	why := e.graphs[0].Usable()
	for _, p := range others {
		err = errors.Join(err, p.Free())
	}
	if err != nil || why == nil {
		return "usable", err
	}
	return why.Error(), nil
}
