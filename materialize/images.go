package materialize

import (
	"bytes"
	"crypto/sha256"
	"errors"
	"fmt"
	"io"
	"slices"

	"medusa/graphir"
	"medusa/internal/cubin"
	"medusa/interpose/trace"
)

// What a restored process can load again where neither the engine nor a triggering kernel loads it.
//
// A copy from the image alone is another module: it has the image's initial values in its variables and default options.
// So a module may be reloaded only where its state is known: nothing in its code can write a variable, or the process has asked
// for the variable, and what it held at ready is saved and written to the copy.

// compileImages decides which modules may be reloaded, and embeds the images that a restored process may find nowhere else:
// those of modules that load after the engine's own start and lie in no shared object, or of all such modules.
func compileImages(a *Recording, spec *graphir.Spec, all bool) error {
	wanted := map[string]bool{}
	for i := range spec.Modules {
		if r := a.module(&spec.Modules[i]); r != nil {
			wanted[r.identityKey()] = true
		}
	}
	images, err := a.images(wanted)
	if err != nil {
		return err
	}
	known := variablesOf(spec)
	warmup := a.phaseOrder("warmup", "capture")
	for i := range spec.Modules {
		m := &spec.Modules[i]
		recorded := a.module(m)
		if recorded == nil {
			continue
		}
		image, found := images[recorded.identityKey()]
		if !found {
			continue
		}
		m.ImageSHA256 = sha256.Sum256(image)
		// mutant: state and options of a reloaded module
		if recorded.Options != 0 || stateful(known, uint32(i), image) != "" {
			continue
		}
		m.Reload = true
		embedded := slices.ContainsFunc(spec.Images, func(x graphir.Image) bool { return bytes.Equal(x.Data, image) })
		if recorded.loaded > warmup && (all || m.DSO == "") && !embedded {
			spec.Images = append(spec.Images, graphir.Image{Data: image})
		}
	}
	return nil
}

// module returns the recorded module with a table entry's image: the one that was loaded first. A hidden one has none.
func (r *Recording) module(m *graphir.Module) *module {
	var first *module
	for _, x := range r.modules {
		same := [32]byte(padded(x.SHA256)) == m.ImageSHA256
		if len(x.SHA256) == 0 {
			same = x.BuildID == m.BuildID && x.DSOOffset == m.DSOOffset
		}
		if m.Kind != graphir.ModuleHidden && same && x.Kind == trace.ModuleKind(m.Kind) && (first == nil || x.loaded < first.loaded) {
			first = x
		}
	}
	return first
}

func padded(sum []byte) []byte { return append(slices.Clone(sum), make([]byte, 32)...)[:32] }

// stateful returns why a copy would not have the module's state: "" where it would.
func stateful(known variables, index uint32, image []byte) string {
	objects, err := cubin.Parse(image)
	if err != nil {
		return err.Error()
	}
	for i := range objects {
		for _, g := range objects[i].State() {
			if !known.saved[variable{index, g.Name}] {
				return fmt.Sprintf("kernels can write variable %s, whose contents are not known", g.Name)
			}
		}
	}
	if name, found := known.unsaved[index]; found {
		return fmt.Sprintf("the engine can have written variable %s, whose contents are not known", name)
	}
	return ""
}

// variable is a module's, by the module's number in a recording or its index in a spec.
type variable struct {
	module uint32
	name   string
}

// variables says of module variables whether all their bytes are among the contents, and were the same in both runs.
type variables struct {
	saved   map[variable]bool
	unsaved map[uint32]string // the first of each module that is not
}

func variablesOf(spec *graphir.Spec) variables {
	sizes := make([]uint64, len(spec.Globals))
	for _, c := range spec.Contents {
		if c.Space == graphir.SpaceGlobal && len(c.Unstable) == 0 {
			sizes[c.Alloc] += uint64(len(c.Data))
		}
	}
	out := variables{map[variable]bool{}, map[uint32]string{}}
	for i, g := range spec.Globals {
		saved := sizes[i] == g.Size
		out.saved[variable{g.Module, g.Name}] = saved
		if _, found := out.unsaved[g.Module]; !saved && !found {
			out.unsaved[g.Module] = g.Name
		}
	}
	return out
}

// images reads the images of the modules with the given identities: in the trace once more, or in the shared objects that
// hold them.
func (r *Recording) images(wanted map[string]bool) (map[string][]byte, error) {
	found := map[string][]byte{}
	for _, m := range r.modules {
		if key := m.identityKey(); wanted[key] && len(m.SHA256) == 0 && found[key] == nil {
			image, err := imageInObject(m)
			if err != nil {
				return nil, fmt.Errorf("read the image of %s: %w", m.describe(), err)
			}
			found[key] = image
		}
	}
	f, err := trace.Open(r.path)
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
