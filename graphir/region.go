package graphir

import (
	"crypto/sha256"
	"errors"
	"fmt"
)

// Region is the range of device addresses in which a recorded process had its memory (docs/exact-addresses.md). If it is zero,
// the driver chose the addresses, and they have no meaning in another process.
type Region struct{ Base, Size uint64 }

// Contains reports whether all size bytes at addr lie in the region.
func (r Region) Contains(addr, size uint64) bool {
	return addr >= r.Base && addr-r.Base < r.Size && size <= r.Size-(addr-r.Base)
}

// Image is the bytes of a module, for a process that cannot find them elsewhere. The Module has their digest.
type Image struct{ Data []byte }

// Image returns the embedded image of a module, or nil.
func (s *Spec) Image(m *Module) []byte {
	for _, image := range s.Images {
		if uint64(len(image.Data)) == m.ImageSize && sha256.Sum256(image.Data) == m.ImageSHA256 {
			return image.Data
		}
	}
	return nil
}

func (e *encoder) exact(s *Spec) {
	if s.Region != (Region{}) {
		e.buffers.RegionBase, e.buffers.RegionSize = s.Region.Base, s.Region.Size
		for _, a := range s.Allocations {
			at := uint64(0)
			if a.Address != 0 {
				at = a.Address - s.Region.Base + 1
			}
			e.buffers.AllocAddress = append(e.buffers.AllocAddress, at)
		}
	}
	for _, image := range s.Images {
		e.buffers.ImageBlob = append(e.buffers.ImageBlob, e.blob(image.Data))
	}
}

func (d *decoder) region() error {
	pb, s := d.buffers, d.spec
	s.Region = Region{pb.RegionBase, pb.RegionSize}
	if len(pb.AllocAddress) != 0 && len(pb.AllocAddress) != len(s.Allocations) {
		return &FormatError{"addresses", -1, errColumns}
	}
	for i, at := range pb.AllocAddress {
		if at != 0 {
			s.Allocations[i].Address = s.Region.Base + at - 1
		}
	}
	return nil
}

func (d *decoder) images(blobs [][]byte, used []bool) error {
	d.spec.Images = table[Image](len(d.buffers.ImageBlob))
	for i, id := range d.buffers.ImageBlob {
		if int64(id) >= int64(len(blobs)) {
			return &FormatError{"images", i, fmt.Errorf("blob %d of %d", id, len(blobs))}
		}
		used[id] = true
		d.spec.Images = append(d.spec.Images, Image{Data: blobs[id]})
	}
	return nil
}

var errNoRegion = errors.New("an address without a region")

func (v *validator) exact() {
	r := v.spec.Region
	if r.Base+r.Size < r.Base || (r.Size == 0) != (r.Base == 0) {
		v.bad("region", "%#x of %#x bytes", r.Base, r.Size)
	}
	for i, a := range v.spec.Allocations {
		switch {
		case a.Address == 0:
		case r == (Region{}):
			v.bad(fmt.Sprintf("allocations[%d].address", i), "%v", errNoRegion)
		case !r.Contains(a.Address, a.Size):
			v.bad(fmt.Sprintf("allocations[%d].address", i), "%#x, %d bytes, outside of the region", a.Address, a.Size)
		}
	}
	if len(v.spec.Images) == 0 {
		return
	}
	wanted := make(map[[32]byte]*Module)
	for i := range v.spec.Modules {
		wanted[v.spec.Modules[i].ImageSHA256] = &v.spec.Modules[i]
	}
	for i, image := range v.spec.Images {
		sum := sha256.Sum256(image.Data)
		switch m := wanted[sum]; {
		case m == nil:
			v.bad(fmt.Sprintf("images[%d]", i), "no module has it, or two images are equal")
		case m.ImageSize != uint64(len(image.Data)):
			v.bad(fmt.Sprintf("images[%d]", i), "%d bytes, the module's image has %d", len(image.Data), m.ImageSize)
		}
		delete(wanted, sum)
	}
}

func (t *textWriter) exact() {
	s := t.spec
	if s.Region != (Region{}) {
		t.printf("region: base=%#x size=%#x\n", s.Region.Base, s.Region.Size)
		for i, a := range s.Allocations {
			if a.Address != 0 {
				t.printf("at %d: %#x\n", i, a.Address)
			}
		}
	}
	for i, image := range s.Images {
		t.printf("image %d: size=%d sha256=%x\n", i, len(image.Data), sha256.Sum256(image.Data))
	}
}

// blob returns the index of the blob with this content, and adds the blob if it is new.
func (e *encoder) blob(data []byte) uint32 {
	sum := sha256.Sum256(data)
	if id, known := e.blobIDs[sum]; known {
		return id
	}
	id := uint32(len(e.blobs))
	e.blobIDs[sum] = id
	e.blobs = append(e.blobs, Blob{SHA256: sum, Data: data})
	e.buffers.BlobSha256 = append(e.buffers.BlobSha256, sum[:]...)
	e.buffers.BlobSize = append(e.buffers.BlobSize, uint64(len(data)))
	return id
}
