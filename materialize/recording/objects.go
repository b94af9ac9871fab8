package recording

import (
	"medusa/graphir"
	"medusa/interpose/trace"
)

// Event lives from record born up to, not including, record died.
type Event struct {
	*trace.Event
	Born, Died uint64
}

// Global is a module variable whose address the process asked for. As memory it is an allocation in a space of its own.
type Global struct {
	Allocation
	Name string
}

// TensorMap is the arguments of one encoded tensor map, and the address that it holds now.
type TensorMap struct {
	*trace.TensorMap
	Addr uint64
}

func (r *Recording) addGlobal(v *trace.Global) error {
	if r.Modules[v.Module] == nil {
		return nil // of a module whose load was not seen: a pointer into it leads nowhere, and is refused as that
	}
	if err := r.wraps(v.Addr, v.Size, v.Header().Order); err != nil {
		return err
	}
	g := Global{Name: v.Name}
	g.Allocation = Allocation{
		Module: v.Module, Space: graphir.SpaceGlobal, Kind: graphir.AllocDevice, Addr: v.Addr, Size: v.Size, Born: r.Modules[v.Module].Loaded, Died: NoOrder,
	}
	if v.Managed != 0 {
		g.Kind = graphir.AllocManaged
	}
	r.variables[v.Module] = append(r.variables[v.Module], len(r.Globals))
	r.Globals = append(r.Globals, g)
	return nil
}

func (r *Recording) unload(module uint32, order uint64) {
	if m := r.Modules[module]; m != nil {
		m.Unloaded = order
	}
	for _, i := range r.variables[module] {
		r.Globals[i].Died = order
	}
	delete(r.variables, module)
}

func (r *Recording) moveTensorMap(v *trace.TensorMoved) {
	from := &trace.TensorMap{}
	if m := r.TensorMaps[string(v.Before)]; m != nil {
		from = m.TensorMap
	}
	// mutant: tensor map that moved
	r.TensorMaps[string(v.After)] = &TensorMap{TensorMap: from, Addr: v.Addr}
}
