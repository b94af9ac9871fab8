package materialize

import (
	"testing"

	"medusa/graphir"
	"medusa/interpose/trace"
	"medusa/materialize/recording"
)

func TestInputsOfTheProfile(t *testing.T) {
	mark := func(name string, role graphir.Role, hi int64) *trace.Tensor {
		return &trace.Tensor{Name: name, Role: uint32(role), Dtype: uint32(graphir.I32), Size: 8, Hi: hi}
	}
	in := inputsOf(&recording.Recording{Tensors: []*trace.Tensor{
		mark("length", graphir.RoleWeight, 0), mark("length", graphir.RoleInput, 1),
		mark("scale", graphir.RoleWeight, 0), mark("taken back", graphir.RoleInput, 1), mark("taken back", graphir.RoleWeight, 0),
		mark("ids", graphir.RoleInput, 9),
	}})
	spec := &graphir.Spec{}
	for _, name := range []string{"length", "scale", "taken back", "ids", "late"} {
		role, hi := graphir.RoleWeight, int64(0)
		if name == "ids" {
			role, hi = graphir.RoleInput, 5
		}
		spec.Tensors = append(spec.Tensors, graphir.Tensor{Name: name, Role: role, Size: 8, Hi: hi})
	}
	in.apply(spec)
	for i, want := range []struct {
		role graphir.Role
		hi   int64
	}{{graphir.RoleInput, 1}, {graphir.RoleWeight, 0}, {graphir.RoleWeight, 0}, {graphir.RoleInput, 5}, {graphir.RoleWeight, 0}} {
		if got := spec.Tensors[i]; got.Role != want.role || got.Hi != want.hi {
			t.Errorf("%s: role %v up to %d, want %v up to %d", got.Name, got.Role, got.Hi, want.role, want.hi)
		}
	}
}
