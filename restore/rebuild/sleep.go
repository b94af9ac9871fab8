package rebuild

import (
	"errors"
	"fmt"
	"slices"

	"medusa/graphir"
	"medusa/internal/cuda"
	"medusa/restore/live"
)

// kept is the data of sleeping graphs that the host keeps.
type kept struct {
	base   []uint64 // of all objects
	pieces []piece
}

// piece is a part of memory that replays read before they write it.
type piece struct {
	at          graphir.Pointer
	data        []byte
	relocations []graphir.Relocation // in data
	owned       bool                 // it lies in memory of the capture phase
}

// Sleep destroys the executable graphs and gives the memory of the capture phase back. Until Wake, no graph is usable, and the engine may unmap
// memory that graphs refer to if it maps as much at the same addresses again. No graph may be running. If Sleep fails, no graph is usable any more.
func (g *Graphs) Sleep() error {
	v := &g.validity
	if v.asleep {
		return nil
	}
	err := live.InTrigger(func() (err error) {
		if g.Usable() == nil {
			g.kept, err = g.keep()
		}
		return errors.Join(err, destroyExecs(g.Execs), g.owned.freeAllocations())
	})
	if v.asleep = true; err != nil {
		g.Invalidate(fmt.Errorf("put graphs asleep: %w", err))
	}
	return err
}

// Mapped reports whether all memory is there that graphs refer to.
func (g *Graphs) Mapped() bool {
	// mutant: graphs whose memory is not all back
	return g.validity.suspended == nil || g.validity.suspended.Load() == 0
}

// Wake makes memory and graphs again, once the engine's memory is mapped and holds its earlier contents. Tensors in memory of the capture
// phase may lie elsewhere then. If Wake fails, it gives back all that it made, and no graph is usable any more.
func (g *Graphs) Wake(lazy bool) error {
	v := &g.validity
	if !v.asleep {
		return nil
	}
	v.asleep = false
	if c := v.unmaps.count; c != nil {
		v.unmaps.before = c.Load()
	}
	err := g.Usable()
	if err != nil {
		return err
	}
	if err = live.InTrigger(g.putBack); err == nil {
		err = g.Build(lazy)
	}
	if err == nil {
		return nil
	}
	err = errors.Join(fmt.Errorf("wake graphs: %w", err), live.InTrigger(func() error {
		return errors.Join(destroyExecs(g.Execs), g.owned.freeAllocations())
	}))
	g.Invalidate(err)
	return err
}

// keep reads contents and tensors, except outputs. Contents come last: only their pointers are known.
func (g *Graphs) keep() (kept, error) {
	k := kept{base: slices.Clone(g.Memory.Base)}
	owned := func(p graphir.Pointer) bool {
		return p.Space == graphir.SpaceAlloc && g.spec.Allocations[p.Index].Owner == graphir.OwnerGraph && g.Memory.Base[p.Index] != 0
	}
	for i := range g.spec.Tensors {
		// mutant: tensor of the capture phase that the engine has written
		if t := &g.spec.Tensors[i]; t.Role != graphir.RoleOutput && owned(t.At) {
			k.pieces = append(k.pieces, piece{t.At, make([]byte, t.Size), nil, true})
		}
	}
	for i := range g.spec.Contents {
		c := &g.spec.Contents[i]
		at := graphir.Pointer{Index: c.Alloc, Offset: c.Offset, Space: c.Space}
		if owned(at) || len(c.Relocations) > 0 {
			k.pieces = append(k.pieces, piece{at, make([]byte, len(c.Data)), c.Relocations, owned(at)})
		}
	}
	for _, p := range k.pieces {
		at, err := g.Memory.Address(p.at)
		if err == nil && p.at.Space == graphir.SpaceHost {
			copy(p.data, hostBytes(at, len(p.data)))
		} else if err == nil {
			err = cuda.CopyToHost(p.data, cuda.DevicePtr(at))
		}
		if err != nil {
			return k, fmt.Errorf("keep %s#%d + %d: %w", p.at.Space, p.at.Index, p.at.Offset, err)
		}
	}
	return k, nil
}

// putBack makes the memory of the capture phase again, with its earlier contents. If it lies elsewhere, pointers to it change.
func (g *Graphs) putBack() error {
	if err := g.owned.allocate(); err != nil {
		return err
	}
	moved := !slices.Equal(g.kept.base, g.Memory.Base)
	for _, p := range g.kept.pieces {
		// mutant: memory of the capture phase after a sleep
		if !p.owned && !moved {
			continue
		}
		if moved {
			// mutant: pointers to memory that lies elsewhere after a sleep
			if err := g.Memory.Patch(p.data, p.relocations); err != nil {
				return err
			}
		}
		at, err := g.Memory.Address(p.at)
		if err == nil && p.at.Space == graphir.SpaceHost {
			fillHost(at, p.data)
		} else if err == nil {
			err = cuda.CopyToDevice(cuda.DevicePtr(at), p.data)
		}
		if err != nil {
			return fmt.Errorf("fill %s#%d + %d: %w", p.at.Space, p.at.Index, p.at.Offset, err)
		}
	}
	g.kept = kept{}
	return nil
}
