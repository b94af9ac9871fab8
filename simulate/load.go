package simulate

import (
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"strings"

	"github.com/goccy/go-yaml"
	"github.com/goccy/go-yaml/ast"
	"github.com/goccy/go-yaml/parser"
)

// fileError is an error in an input file. Line and Column count from 1.
type fileError struct {
	File   string
	Line   int
	Column int
	Err    error
}

func (e *fileError) Error() string {
	return fmt.Sprintf("%s:%d:%d: %v", e.File, e.Line, e.Column, e.Err)
}

func (e *fileError) Unwrap() error { return e.Err }

// fieldError is an error at a path of a YAML file; locate turns the path into a position.
type fieldError struct {
	Path string
	Err  error
}

func (e *fieldError) Error() string { return e.Path + ": " + e.Err.Error() }
func (e *fieldError) Unwrap() error { return e.Err }

// maxYAMLBytes bounds scenario and profile files, which people write by hand.
const maxYAMLBytes = 1 << 20

// LoadScenario reads a scenario and the files that it names, relative to its own folder.
func LoadScenario(path string) (*Scenario, error) {
	data, err := readLimited(path)
	if err != nil {
		return nil, err
	}
	return parseScenario(path, data)
}

// parseScenario is LoadScenario for data that was read already. name gives the folder and appears in errors.
func parseScenario(name string, data []byte) (*Scenario, error) {
	// These are the defaults of fields that the file leaves out.
	s := &Scenario{Strategy: nativeStart, Cluster: ClusterSpec{Nodes: 1, GPUs: 1}, dir: filepath.Dir(name)}
	file, err := decode(name, data, s)
	if err != nil {
		return nil, err
	}
	if err := s.finish(); err != nil {
		return nil, locate(name, file, err)
	}
	// An error in a variant is an error of the file: find it now, not when its turn comes.
	for i := range s.Compare {
		if _, err := s.variant(i); err != nil {
			if at, ok := tokenError(name, err); ok {
				return nil, at
			}
			return nil, locate(name, file, &fieldError{Path: fmt.Sprintf("$.compare[%d]", i), Err: err})
		}
	}
	return s, nil
}

// finish fills in defaults, opens the files named, and checks.
func (s *Scenario) finish() error {
	if s.Profiles == "" {
		return &fieldError{Path: "$.profiles", Err: errors.New("check scenario: no profiles file")}
	}
	p, err := loadProfiles(filepath.Join(s.dir, s.Profiles))
	if err != nil {
		return &fieldError{Path: "$.profiles", Err: err}
	}
	s.profiles = p
	for i := range s.Functions {
		if s.Functions[i].Model == "" {
			s.Functions[i].Model = s.Functions[i].Name
		}
	}
	if err := s.Workload.open(s.dir); err != nil {
		return &fieldError{Path: "$.workload.file", Err: err}
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
		err := guard(func() error { return yaml.NodeToValue(c.With, &v, yaml.Strict()) })
		if err != nil {
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
	data, err := readLimited(path)
	if err != nil {
		return nil, err
	}
	return parseProfiles(path, data)
}

// parseProfiles is loadProfiles for data that was read already. It looks for artifacts in the file's folder.
func parseProfiles(name string, data []byte) (*profiles, error) {
	p := &profiles{}
	file, err := decode(name, data, p)
	if err != nil {
		return nil, err
	}
	for model, m := range p.Models {
		if m.Artifact == "" {
			continue
		}
		if err := m.fromArtifact(filepath.Join(filepath.Dir(name), m.Artifact)); err != nil {
			return nil, locate(name, file, &fieldError{Path: "$.models." + model + ".artifact", Err: err})
		}
		p.Models[model] = m
	}
	if err := p.check(); err != nil {
		return nil, locate(name, file, err)
	}
	return p, nil
}

func readLimited(path string) ([]byte, error) {
	info, err := os.Stat(path)
	if err != nil {
		return nil, fmt.Errorf("read file: %w", err)
	}
	if info.Size() > maxYAMLBytes {
		return nil, fmt.Errorf("read %s: %d bytes (at most %d)", path, info.Size(), maxYAMLBytes)
	}
	return os.ReadFile(path)
}

// decode reads YAML into v and refuses fields that v does not have.
func decode(name string, data []byte, v any) (*ast.File, error) {
	var file *ast.File
	err := guard(func() error {
		if len(data) > maxYAMLBytes {
			return fmt.Errorf("%d bytes (at most %d)", len(data), maxYAMLBytes)
		}
		var err error
		if file, err = parser.ParseBytes(data, 0); err != nil {
			return err
		}
		if len(file.Docs) != 1 || file.Docs[0].Body == nil {
			return errors.New("needs one document")
		}
		return yaml.NodeToValue(file.Docs[0].Body, v, yaml.Strict())
	})
	if err == nil {
		return file, nil
	}
	if at, ok := tokenError(name, err); ok {
		return nil, at
	}
	return nil, &fileError{File: name, Line: 1, Column: 1, Err: fmt.Errorf("read YAML: %w", err)}
}

// tokenError converts an error of the YAML library that has a position.
func tokenError(name string, err error) (*fileError, bool) {
	var at yaml.Error
	if !errors.As(err, &at) || at.GetToken() == nil || at.GetToken().Position == nil {
		return nil, false
	}
	p := at.GetToken().Position
	return &fileError{File: name, Line: max(p.Line, 1), Column: max(p.Column, 1), Err: fmt.Errorf("read YAML: %s", at.GetMessage())}, true
}

// guard turns a panic of the YAML library on hostile input into an error.
func guard(f func() error) (err error) {
	defer func() {
		if r := recover(); r != nil {
			err = fmt.Errorf("malformed input (%v)", r)
		}
	}()
	return f()
}

// locate gives a fieldError its position: that of the field, or of the nearest enclosing one that the file has.
func locate(name string, file *ast.File, err error) error {
	var fault *fileError
	var field *fieldError
	if errors.As(err, &fault) || !errors.As(err, &field) {
		return err
	}
	e := &fileError{File: name, Line: 1, Column: 1, Err: field.Err}
	for path := field.Path; path != ""; {
		if line, column, ok := position(file, path); ok {
			e.Line, e.Column = line, column
			break
		}
		cut := strings.LastIndexAny(path, ".[")
		if cut <= 0 {
			break
		}
		path = path[:cut]
	}
	return e
}

func position(file *ast.File, path string) (line, column int, ok bool) {
	err := guard(func() error {
		p, err := yaml.PathString(path)
		if err != nil {
			return err
		}
		node, err := p.FilterFile(file)
		if err != nil {
			return err
		}
		at := node.GetToken().Position
		line, column = at.Line, at.Column
		return nil
	})
	return line, column, err == nil && line > 0
}
