package rebuild

import (
	"testing"

	"medusa/graphir"
	"medusa/internal/contract"
	"medusa/restore/live"
)

// A module is known by its image's hash, or by the place of the image in a build of a shared object.
func TestSameImage(t *testing.T) {
	place := func(id string, offset, size uint64) *live.Module {
		m := &live.Module{Module: contract.Module{ImageSize: size, DSOOffset: offset}}
		copy(m.BuildID[:], id)
		return m
	}
	hashed := func(hash byte) *live.Module {
		return &live.Module{Module: contract.Module{ImageSHA256: [32]byte{hash}, ImageSize: 100}}
	}
	want := &graphir.Module{Kind: graphir.ModuleLoaded, ImageSHA256: [32]byte{1}, ImageSize: 100, BuildID: "ab", DSOOffset: 64}
	library := place("ab", 64, 100)
	library.IsLibrary = 1
	for _, tt := range []struct {
		name string
		got  *live.Module
		same bool
	}{
		{"its place", place("ab", 64, 100), true},
		{"another place", place("ab", 128, 100), false},
		{"another size", place("ab", 64, 101), false},
		{"another build, whose image is gone", place("cd", 64, 100), false},
		{"its image, elsewhere", hashed(1), true},
		{"another image", hashed(2), false},
		{"a library", library, false},
	} {
		if got := sameImage(want, tt.got); got != tt.same {
			t.Errorf("%s: %v, want %v", tt.name, got, tt.same)
		}
	}
	if sameImage(&graphir.Module{Kind: graphir.ModuleLoaded, ImageSize: 100, BuildID: "ab", DSOOffset: 64}, hashed(0)) {
		t.Error("two unknown images are the same")
	}
}
