package graphir_test

import (
	"crypto/sha256"
	"errors"
	"strings"
	"testing"

	"medusa/graphir"
)

// placed is handmade with a region, addresses and an image.
func placed() *graphir.Spec {
	s := handmade()
	s.Region = graphir.Region{Base: 0x1200_0000_0000, Size: 1 << 40}
	s.Allocations[0].Address = s.Region.Base
	s.Allocations[1].Address = s.Region.Base + 1<<30
	image := []byte("an image")
	m := &s.Modules[0]
	m.ImageSHA256, m.ImageSize, m.Reload = sha256.Sum256(image), uint64(len(image)), true
	s.Images = []graphir.Image{{Data: image}}
	return s
}

func TestPlacesAndImages(t *testing.T) {
	want := placed()
	got := reread(t, want)
	if !graphir.Equal(got, want) {
		t.Errorf("decoded %+v %+v", got.Region, got.Allocations)
	}
	if string(got.Image(&got.Modules[0])) != "an image" || got.Image(&got.Modules[1]) != nil {
		t.Error("a module's image is not found by its digest")
	}
}

func TestPlacesAreChecked(t *testing.T) {
	for name, change := range map[string]func(s *graphir.Spec){
		"outside of the region":    func(s *graphir.Spec) { s.Allocations[1].Address = s.Region.Base + s.Region.Size - 1 },
		"below the region":         func(s *graphir.Spec) { s.Allocations[1].Address = s.Region.Base - 4096 },
		"address without a region": func(s *graphir.Spec) { s.Region = graphir.Region{} },
		"wrapped region":           func(s *graphir.Spec) { s.Region.Size = -s.Region.Base + 1 },
		"region without a base":    func(s *graphir.Spec) { s.Region.Base = 0 },
		"image of no module":       func(s *graphir.Spec) { s.Images[0].Data = []byte("another") },
		"image twice":              func(s *graphir.Spec) { s.Images = append(s.Images, s.Images[0]) },
	} {
		s := placed()
		change(s)
		var invalid *graphir.ValidationError
		if err := s.Validate(); !errors.As(err, &invalid) || !strings.Contains(err.Error(), "region") && !strings.Contains(err.Error(), "image") {
			t.Errorf("%s: %v", name, err)
		}
	}
}
