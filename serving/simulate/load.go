package simulate

import (
	"errors"
	"fmt"
	"path/filepath"

	"medusa/internal/yamlfile"
)

// LoadScenario reads a scenario and the files that it names, relative to its own folder.
func LoadScenario(path string) (*Scenario, error) {
	data, err := yamlfile.Read(path)
	if err != nil {
		return nil, err
	}
	return parseScenario(path, data)
}

// parseScenario is LoadScenario for data that was read already. name gives the folder and appears in errors.
func parseScenario(name string, data []byte) (*Scenario, error) {
	// These are the defaults of fields that the file leaves out.
	s := &Scenario{Strategy: nativeStart, Cluster: ClusterSpec{Nodes: 1, GPUs: 1}, dir: filepath.Dir(name)}
	file, err := yamlfile.Decode(name, data, s)
	if err != nil {
		return nil, err
	}
	if err := s.finish(); err != nil {
		return nil, yamlfile.Locate(name, file, err)
	}
	// An error in a variant is an error of the file, so it has to be found now.
	for i := range s.Compare {
		if _, err := s.variant(i); err != nil {
			if at, ok := yamlfile.TokenError(name, err); ok {
				return nil, at
			}
			return nil, yamlfile.Locate(name, file, &yamlfile.FieldError{Path: fmt.Sprintf("$.compare[%d]", i), Err: err})
		}
	}
	return s, nil
}

// finish fills in defaults, opens the files named, and checks.
func (s *Scenario) finish() error {
	if s.Profiles == "" {
		return &yamlfile.FieldError{Path: "$.profiles", Err: errors.New("check scenario: no profiles file")}
	}
	p, err := loadProfiles(filepath.Join(s.dir, s.Profiles))
	if err != nil {
		return &yamlfile.FieldError{Path: "$.profiles", Err: err}
	}
	s.profiles = p
	for i := range s.Functions {
		if s.Functions[i].Model == "" {
			s.Functions[i].Model = s.Functions[i].Name
		}
	}
	if err := s.Workload.open(s.dir); err != nil {
		return &yamlfile.FieldError{Path: "$.workload.file", Err: err}
	}
	return s.check()
}

// variant is the scenario as the i-th entry of compare changes it.
func (s *Scenario) variant(i int) (*Scenario, error) {
	v := *s
	v.Compare, v.Figures = nil, nil
	// A list in the variant replaces the scenario's list and must not be written into it.
	v.Functions = append([]Function(nil), s.Functions...)
	c := s.Compare[i]
	if c.Name == "" {
		return nil, errors.New("check scenario: a variant needs a name")
	}
	if c.With != nil {
		if err := yamlfile.DecodeNode(c.With, &v); err != nil {
			return nil, fmt.Errorf("read variant %s: %w", c.Name, err)
		}
	}
	if len(v.Compare) > 0 || len(v.Figures) > 0 {
		return nil, fmt.Errorf("read variant %s: variants do not nest", c.Name)
	}
	if err := v.finish(); err != nil {
		return nil, fmt.Errorf("check variant %s: %w", c.Name, err)
	}
	return &v, nil
}

// loadProfiles reads a file of cost profiles.
func loadProfiles(path string) (*profiles, error) {
	data, err := yamlfile.Read(path)
	if err != nil {
		return nil, err
	}
	return parseProfiles(path, data)
}

// parseProfiles is loadProfiles for data that was read already. It looks for artifacts in the file's folder.
func parseProfiles(name string, data []byte) (*profiles, error) {
	p := &profiles{}
	file, err := yamlfile.Decode(name, data, p)
	if err != nil {
		return nil, err
	}
	for model, m := range p.Models {
		if m.Artifact == "" {
			continue
		}
		if err := m.fromArtifact(filepath.Join(filepath.Dir(name), m.Artifact)); err != nil {
			return nil, yamlfile.Locate(name, file, &yamlfile.FieldError{Path: "$.models." + model + ".artifact", Err: err})
		}
		p.Models[model] = m
	}
	if err := p.check(); err != nil {
		return nil, yamlfile.Locate(name, file, err)
	}
	return p, nil
}
