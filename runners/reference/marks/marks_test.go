package marks

import (
	"testing"
	"unsafe"
)

// Sizes and offsets of medusa.h on 64-bit Linux.
func TestMirrorLayouts(t *testing.T) {
	var c tensor
	for _, row := range []struct {
		what      string
		got, want uintptr
	}{
		{"struct medusa_tensor", unsafe.Sizeof(c), 120},
		{"medusa_tensor.role", unsafe.Offsetof(c.role), 24},
		{"medusa_tensor.shape", unsafe.Offsetof(c.shape), 40},
		{"medusa_tensor.hi", unsafe.Offsetof(c.hi), 112},
		{"struct medusa_kv_profile", unsafe.Sizeof(KVProfile{}), 64},
		{"medusa_kv_profile.utilization", unsafe.Offsetof(KVProfile{}.Utilization), 40},
		{"medusa_kv_profile.workspace", unsafe.Offsetof(KVProfile{}.Workspace), 56},
	} {
		if row.got != row.want {
			t.Errorf("%s is at %d, want %d", row.what, row.got, row.want)
		}
	}
}
