package compile

import (
	"bytes"
	"crypto/sha256"
	"fmt"
	"slices"

	"medusa/graphir"
	"medusa/internal/cubin"
	"medusa/interpose/trace"
	"medusa/materialize/recording"
)

// Modules that a restored process can load again if neither the engine nor a triggering kernel loads them.
//
// A copy from the image alone is another module: it has the image's initial values in its variables and default options.
// So a module may be reloaded only if its state is known: its code cannot write a variable, or the process has asked for the
// variable, and its contents at ready are saved and written to the copy.

// Images decides which modules may be reloaded, and embeds the images that a restored process may not find otherwise:
// those of modules that load after the engine's own start and lie in no shared object, or of all such modules.
func Images(a *recording.Recording, spec *graphir.Spec, all bool) error {
	wanted := map[string]bool{}
	for i := range spec.Modules {
		if r := recordedModule(a, &spec.Modules[i]); r != nil {
			wanted[r.IdentityKey()] = true
		}
	}
	images, err := a.Images(wanted)
	if err != nil {
		return err
	}
	known := variablesOf(spec)
	warmup := a.PhaseOrder("warmup", "capture")
	for i := range spec.Modules {
		m := &spec.Modules[i]
		recorded := recordedModule(a, m)
		if recorded == nil {
			continue
		}
		image, found := images[recorded.IdentityKey()]
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
		if recorded.Loaded > warmup && (all || m.DSO == "") && !embedded {
			spec.Images = append(spec.Images, graphir.Image{Data: image})
		}
	}
	return nil
}

// recordedModule returns the recorded module with a table entry's image: the one that was loaded first. A hidden one has none.
func recordedModule(r *recording.Recording, m *graphir.Module) *recording.Module {
	var first *recording.Module
	for _, x := range r.Modules {
		same := [32]byte(padded(x.SHA256)) == m.ImageSHA256
		if len(x.SHA256) == 0 {
			same = x.BuildID == m.BuildID && x.DSOOffset == m.DSOOffset
		}
		if m.Kind != graphir.ModuleHidden && same && x.Kind == trace.ModuleKind(m.Kind) && (first == nil || x.Loaded < first.Loaded) {
			first = x
		}
	}
	return first
}

func padded(sum []byte) []byte { return append(slices.Clone(sum), make([]byte, 32)...)[:32] }

// stateful returns the reason why a copy would not have the module's state, or "" if it would.
func stateful(known savedVariables, index uint32, image []byte) string {
	objects, err := cubin.Parse(image)
	if err != nil {
		return err.Error()
	}
	for i := range objects {
		for _, g := range objects[i].State() {
			if !known.saved[savedName{index, g.Name}] {
				return fmt.Sprintf("kernels can write variable %s, whose contents are not known", g.Name)
			}
		}
	}
	if name, found := known.unsaved[index]; found {
		return fmt.Sprintf("the engine can have written variable %s, whose contents are not known", name)
	}
	return ""
}

// savedName is a variable of a module's, by the module's number in a recording or its index in a spec.
type savedName struct {
	module uint32
	name   string
}

// savedVariables says of module variables whether all their bytes are among the contents, and were the same in both runs.
type savedVariables struct {
	saved   map[savedName]bool
	unsaved map[uint32]string // the first of each module that is not
}

func variablesOf(spec *graphir.Spec) savedVariables {
	sizes := make([]uint64, len(spec.Globals))
	for _, c := range spec.Contents {
		if c.Space == graphir.SpaceGlobal && len(c.Unstable) == 0 {
			sizes[c.Alloc] += uint64(len(c.Data))
		}
	}
	out := savedVariables{map[savedName]bool{}, map[uint32]string{}}
	for i, g := range spec.Globals {
		saved := sizes[i] == g.Size
		out.saved[savedName{g.Module, g.Name}] = saved
		if _, found := out.unsaved[g.Module]; !saved && !found {
			out.unsaved[g.Module] = g.Name
		}
	}
	return out
}
