package supervisor

import (
	"errors"
	"io"
	"io/fs"
	"slices"

	"medusa/artifacts"
	"medusa/artifacts/store"
	"medusa/internal/printable"
)

// CheckedDrivers returns the differences that full checks on this machine have allowed for an artifact (medusa verify): one
// driver each. The engine's process compares its own driver with them. Without a cache there is none. If a record cannot be
// read for another reason, that is one line in log.
func CheckedDrivers(artifact string, log io.Writer) artifacts.Relaxed {
	cache, err := store.FromEnv()
	if err != nil {
		return nil
	}
	known, err := cache.Drivers(artifact)
	if err != nil {
		if !errors.Is(err, fs.ErrNotExist) { // of the artifact, which the engine's process says
			printable.Fprintf(log, "medusa: %v\n", err)
		}
		return nil
	}
	m, err := artifacts.ReadManifest(artifact)
	if err != nil {
		return nil // the engine's process reports the reason
	}
	var out artifacts.Relaxed
	gpu, _ := m.Identity.Get(artifacts.KeyGPUName)
	made, _ := m.Identity.Get(artifacts.KeyDriverVersion)
	for _, d := range known {
		// mutant: a check counts for its GPU and a driver of the same major version
		if d.GPU == gpu && artifacts.SameMajor(d.Version, made) {
			out = append(out, artifacts.KeyDriverVersion+"="+d.Version)
		}
	}
	return slices.Clip(out)
}
