package recording

import (
	"errors"
	"fmt"
	"io"
	"slices"

	"medusa/interpose/trace"
)

// Images reads the images of the modules with the given identities: in the trace once more, or in the shared objects that
// hold them.
func (r *Recording) Images(wanted map[string]bool) (map[string][]byte, error) {
	found := map[string][]byte{}
	for _, m := range r.Modules {
		if key := m.IdentityKey(); wanted[key] && len(m.SHA256) == 0 && found[key] == nil {
			image, err := imageInObject(m)
			if err != nil {
				return nil, fmt.Errorf("read the image of %s: %w", m.Describe(), err)
			}
			found[key] = image
		}
	}
	f, err := trace.Open(r.Path)
	if err != nil {
		return nil, err
	}
	defer f.Close()
	for {
		rec, err := f.Next()
		if errors.Is(err, io.EOF) {
			return found, nil
		}
		if err != nil {
			return nil, err
		}
		if v, ok := rec.(*trace.Image); ok && len(v.SHA256) == 32 && len(v.Data) > 0 && wanted["image:"+string(v.SHA256)] {
			found["image:"+string(v.SHA256)] = slices.Clone(v.Data)
		}
	}
}
