package rebuild

import "medusa/graphir"

// KernelFound says how this process came by a kernel that its restored graphs launch.
type KernelFound struct {
	Name   string // mangled
	Module string // for people
	How    string
}

// How a kernel was found, best first: a copy loaded from an image has no state but the one in the artifact.
const (
	foundLoaded    = "loaded"    // in a module that the engine's own start had loaded
	foundTriggered = "triggered" // in one that a triggering layer made the driver load
	foundObject    = "object"    // in a copy from the shared object that holds its image
	foundArtifact  = "artifact"  // in a copy from the artifact
)

// foundAs says how the resolver came by a kernel that it found in a module. The libraries of one vendor may hold the same
// image, so that may be the copy that was made for another library's kernel.
func (r *resolver) foundAs(k graphir.Kernel, module uint64) KernelFound {
	// mutant: how a kernel was found
	how := r.copies[module]
	if how == "" {
		how = foundLoaded
		for _, t := range r.spec.Triggers {
			for _, other := range t.Kernels {
				if r.spec.Kernels[other].Module == k.Module {
					how = foundTriggered
				}
			}
		}
	}
	return KernelFound{k.Name, r.describe(r.spec.Modules[k.Module]), how}
}
