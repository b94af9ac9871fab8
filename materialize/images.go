package materialize

import (
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
	wanted := map[[32]byte]bool{}
	for i := range spec.Modules {
		if m := &spec.Modules[i]; m.Kind != graphir.ModuleHidden {
			wanted[m.ImageSHA256] = true
		}
	}
	images, err := a.images(wanted)
	if err != nil {
		return err
	}
	warmup := a.phaseOrder("warmup", "capture")
	for i := range spec.Modules {
		m := &spec.Modules[i]
		image, known := images[m.ImageSHA256]
		recorded := a.module(m)
		if m.Kind == graphir.ModuleHidden || !known || recorded == nil || recorded.Options != 0 || stateful(spec, uint32(i), image) != "" {
			continue
		}
		m.Reload = true
		embedded := slices.ContainsFunc(spec.Images, func(x graphir.Image) bool { return &x.Data[0] == &image[0] })
		if recorded.loaded > warmup && (all || m.DSO == "") && !embedded {
			spec.Images = append(spec.Images, graphir.Image{Data: image})
		}
	}
	return nil
}

// module returns the recorded module with a table entry's image: the one that was loaded first.
func (r *Recording) module(m *graphir.Module) *module {
	var first *module
	for _, x := range r.modules {
		if [32]byte(padded(x.SHA256)) == m.ImageSHA256 && x.Kind == trace.ModuleKind(m.Kind) && (first == nil || x.loaded < first.loaded) {
			first = x
		}
	}
	return first
}

func padded(sum []byte) []byte { return append(slices.Clone(sum), make([]byte, 32)...)[:32] }

// stateful returns why a copy would not have the module's state: "" where it would.
func stateful(spec *graphir.Spec, index uint32, image []byte) string {
	objects, err := cubin.Parse(image)
	if err != nil {
		return err.Error()
	}
	for i := range objects {
		for _, g := range objects[i].State() {
			if !saved(spec, index, g.Name) {
				return fmt.Sprintf("kernels can write variable %s, whose contents are not known", g.Name)
			}
		}
	}
	for _, g := range spec.Globals {
		if g.Module == index && !saved(spec, index, g.Name) {
			return fmt.Sprintf("the engine can have written variable %s, whose contents are not known", g.Name)
		}
	}
	return ""
}

// saved reports whether all bytes of a module variable are among the contents, and were the same in both runs.
func saved(spec *graphir.Spec, module uint32, name string) bool {
	for i, g := range spec.Globals {
		if g.Module != module || g.Name != name {
			continue
		}
		size := uint64(0)
		for _, c := range spec.Contents {
			if c.Space == graphir.SpaceGlobal && c.Alloc == uint32(i) && len(c.Unstable) == 0 {
				size += uint64(len(c.Data))
			}
		}
		return size == g.Size
	}
	return false
}

// images reads the trace once more, for the images with the given digests.
func (r *Recording) images(wanted map[[32]byte]bool) (map[[32]byte][]byte, error) {
	f, err := trace.Open(r.path)
	if err != nil {
		return nil, err
	}
	defer f.Close()
	found := map[[32]byte][]byte{}
	for {
		rec, err := f.Next()
		if errors.Is(err, io.EOF) {
			return found, nil
		}
		if err != nil {
			return nil, err
		}
		if v, ok := rec.(*trace.Image); ok && len(v.SHA256) == 32 && len(v.Data) > 0 && wanted[[32]byte(v.SHA256)] {
			found[[32]byte(v.SHA256)] = slices.Clone(v.Data)
		}
	}
}
