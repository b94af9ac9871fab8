package compile

import (
	"fmt"

	"medusa/graphir"
	"medusa/interpose/trace"
)

// collectiveNodes are holes: calls of the engine's communicator. The recording lacks the nodes that they added.
var collectiveNodes = nodeOf(nodeType[*trace.Collective]{
	makes: []graphir.NodeType{graphir.NodeCollective},
	kind: func(_ *shape, v *trace.Collective) (uint64, error) {
		return mix(9, uint64(v.Number), uint64(v.Operation), uint64(v.Dtype), uint64(v.Reduce), uint64(v.Root), v.Count, v.SendBytes, v.RecvBytes), nil
	},
	words:   func(v *trace.Collective) []uint64 { return []uint64{v.Send, v.Recv} },
	compile: (*graphCompiler).collective,
	compare: compareCollective,
})

func (c *graphCompiler) collective(i int, na, nb *trace.Collective, out *graphir.Node) (err error) {
	call := plainCall(na)
	// mutant: collective call that differs between the runs
	if call != plainCall(nb) {
		return fmt.Errorf("compile graph %q: node %d (collective): it differs between the runs", c.label, i)
	}
	// mutant: collective call without memory
	if call.SendBytes == 0 || call.RecvBytes == 0 {
		return &RefusedError{c.label, i, "collective", "the engine's mark names no memory"}
	}
	if call.Send, err = c.pointer(i, "collective", "send", na.Send, nb.Send); err != nil {
		return err
	}
	if call.Recv, err = c.pointer(i, "collective", "recv", na.Recv, nb.Recv); err != nil {
		return err
	}
	out.Type, out.Params = graphir.NodeCollective, graphir.NewCollective(call)
	return nil
}

// plainCall is the part of a call that is the same in every process.
func plainCall(v *trace.Collective) graphir.Collective {
	return graphir.Collective{
		Number: v.Number, Operation: v.Operation, DType: v.Dtype, Reduce: v.Reduce, Root: v.Root, Count: v.Count,
		SendBytes: v.SendBytes, RecvBytes: v.RecvBytes,
	}
}

// compareCollective compares a call of a third process with the artifact's.
func compareCollective(c *compared, n *trace.Collective) error {
	want := c.want.Collective().Call()
	send, recv := c.x.address(want.Send), c.x.address(want.Recv)
	want.Send, want.Recv = graphir.Pointer{}, graphir.Pointer{}
	// mutant: collective call of a third process
	if got := plainCall(n); got != want {
		return c.differ("its collective call", got, want)
	}
	// mutant: memory of a third process's collective call
	if n.Send != send {
		return c.differ("the source of its collective call", address(n.Send), address(send))
	}
	if n.Recv != recv {
		return c.differ("the destination of its collective call", address(n.Recv), address(recv))
	}
	return nil
}
