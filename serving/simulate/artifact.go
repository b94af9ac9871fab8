package simulate

import (
	"fmt"
	"os"
	"slices"

	"medusa/artifacts"
)

// fromArtifact replaces a profile's stage times by those of an artifact, one set per mode of start, and its artifact size by the
// size of the file. It refuses times from a simulated GPU.
func (p *profile) fromArtifact(path string) error {
	m, err := artifacts.ReadManifest(path)
	if err != nil {
		return err
	}
	for _, id := range m.Identity {
		if id.Key == artifacts.KeyGPUName && simulatedDevice(id.Value) {
			return fmt.Errorf("refuse stage times of %s: measured on a %s", path, id.Value)
		}
	}
	for _, t := range m.Stages {
		s := Strategy(t.Mode)
		if !slices.Contains(strategies(), s) {
			continue // a mode unknown to the simulator
		}
		if simulatedDevice(t.Device) {
			return fmt.Errorf("refuse stage times of %s: device %q", path, t.Device)
		}
		if p.Stages == nil {
			p.Stages = map[Strategy]map[string]float64{}
		}
		p.Stages[s] = map[string]float64{}
		for _, stage := range t.Stages {
			p.Stages[s][stage.Name] += stage.Seconds
		}
	}
	if len(p.Stages) == 0 {
		return fmt.Errorf("read %s: no stage times (made without a measured start?)", path)
	}
	info, err := os.Stat(path)
	if err != nil {
		return fmt.Errorf("read artifact: %w", err)
	}
	p.ArtifactGB = float64(info.Size()) / 1e9
	return nil
}
