package compile

import (
	"fmt"
	"testing"

	"medusa/graphir"
	"medusa/internal/contract"
	"medusa/interpose/trace"
)

// The compiler copies numbers of traces into the IR, which has numbers of its own: both count alike.
func TestNumbersOfTracesAndTheIR(t *testing.T) {
	for n := range 256 {
		recorded, ir := trace.AllocKind(n).String(), graphir.AllocKind(n).String()
		neither := recorded == fmt.Sprintf("alloc_kind %d", n) && ir == fmt.Sprintf("unknown(%d)", n)
		if recorded != ir && !neither {
			t.Errorf("allocation kind %d is %s in a trace, %s in the IR", n, recorded, ir)
		}
	}
	for name, n := range map[string][2]int{
		"weight": {contract.RoleWeight, int(graphir.RoleWeight)}, "kv": {contract.RoleKV, int(graphir.RoleKV)},
		"input": {contract.RoleInput, int(graphir.RoleInput)}, "output": {contract.RoleOutput, int(graphir.RoleOutput)},
		"scratch": {contract.RoleScratch, int(graphir.RoleScratch)},
		"f32":     {contract.DtypeF32, int(graphir.F32)}, "f16": {contract.DtypeF16, int(graphir.F16)}, "bf16": {contract.DtypeBf16, int(graphir.BF16)},
		"i32": {contract.DtypeI32, int(graphir.I32)}, "i64": {contract.DtypeI64, int(graphir.I64)}, "u8": {contract.DtypeU8, int(graphir.U8)},
	} {
		if n[0] != n[1] {
			t.Errorf("%s is %d to engines, %d in the IR", name, n[0], n[1])
		}
	}
}
