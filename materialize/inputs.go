package materialize

import (
	"medusa/graphir"
	"medusa/interpose/trace"
	"medusa/materialize/recording"
)

// inputs are the tensors that the run profile marked as inputs in the end, by name. Some engines learn only from serving which of their buffers
// change, and no other recording run serves.
type inputs map[string]*trace.Tensor

func inputsOf(profile *recording.Recording) inputs {
	in := inputs{}
	for _, t := range profile.Tensors {
		if delete(in, t.Name); graphir.Role(t.Role) == graphir.RoleInput {
			in[t.Name] = t
		}
	}
	return in
}

// apply turns weights into inputs if the run profile marked them as inputs.
func (in inputs) apply(spec *graphir.Spec) {
	for i := range spec.Tensors {
		t := &spec.Tensors[i]
		// mutant: inputs that only serving tells
		if told := in[t.Name]; told != nil && t.Role == graphir.RoleWeight && told.Size == t.Size {
			t.Role, t.DType, t.Shape, t.Lo, t.Hi = graphir.RoleInput, graphir.DType(told.Dtype), told.Shape, told.Lo, told.Hi
		}
	}
}
