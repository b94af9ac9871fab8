package contract

import (
	"testing"
	"unsafe"
)

// Sizes and offsets of medusa.h on 64-bit Linux. Existing engines were built with them, so a change needs a new version of the
// contract.
func TestLayouts(t *testing.T) {
	if Protocol != 1 {
		t.Fatalf("version %d has other layouts", Protocol)
	}
	var c Tensor
	for _, row := range []struct {
		what      string
		got, want uintptr
	}{
		{"struct medusa_tensor", unsafe.Sizeof(c), 120},
		{"medusa_tensor.role", unsafe.Offsetof(c.Role), 24},
		{"medusa_tensor.shape", unsafe.Offsetof(c.Shape), 40},
		{"medusa_tensor.hi", unsafe.Offsetof(c.Hi), 112},
		{"struct medusa_kv_profile", unsafe.Sizeof(KVProfile{}), 64},
		{"medusa_kv_profile.utilization", unsafe.Offsetof(KVProfile{}.Utilization), 40},
		{"medusa_kv_profile.workspace", unsafe.Offsetof(KVProfile{}.Workspace), 56},
		{"struct medusa_alloc", unsafe.Sizeof(Alloc{}), 32},
		{"medusa_alloc.kind", unsafe.Offsetof(Alloc{}.Kind), 16},
		{"struct medusa_exact", unsafe.Sizeof(Exact{}), 144},
		{"struct medusa_event", unsafe.Sizeof(Event{}), 24},
		{"struct medusa_module", unsafe.Sizeof(Module{}), 128},
		{"medusa_module.build_id", unsafe.Offsetof(Module{}.BuildID), 56},
		{"struct medusa_block", unsafe.Sizeof(Block{}), 24},
		{"struct medusa_call", unsafe.Sizeof(Call{}), 80},
		{"struct medusa_session_graph", unsafe.Sizeof(SessionGraph{}), 144},
	} {
		if row.got != row.want {
			t.Errorf("%s is at %d, want %d", row.what, row.got, row.want)
		}
	}
}
