package main

import (
	"bytes"
	"debug/buildinfo"
	"debug/elf"
	"encoding/json"
	"fmt"
	"strings"
)

// The in-toto statement with the predicate of SLSA provenance 1.0. All of it is read from the binaries, so a second build of the
// same commit with the same compilers gives the same statement.
type (
	statement struct {
		Type          string     `json:"_type"`
		Subject       []resource `json:"subject"`
		PredicateType string     `json:"predicateType"`
		Predicate     provenance `json:"predicate"`
	}
	resource struct {
		Name   string            `json:"name,omitempty"`
		URI    string            `json:"uri,omitempty"`
		Digest map[string]string `json:"digest"`
	}
	provenance struct {
		BuildDefinition buildDefinition `json:"buildDefinition"`
		RunDetails      runDetails      `json:"runDetails"`
	}
	buildDefinition struct {
		BuildType            string            `json:"buildType"`
		ExternalParameters   map[string]string `json:"externalParameters"`
		InternalParameters   map[string]string `json:"internalParameters"`
		ResolvedDependencies []resource        `json:"resolvedDependencies"`
	}
	runDetails struct {
		Builder builder `json:"builder"`
	}
	builder struct {
		ID string `json:"id"`
	}
)

// provenanceOf names the commit and the compilers that made the subjects. It also says if the tree had uncommitted changes,
// because such a build cannot be repeated.
func provenanceOf(platforms []platform, subjects []resource, builderID string) ([]byte, error) {
	source := resource{URI: "git:medusa", Digest: map[string]string{}}
	external, internal := map[string]string{"target": "dist"}, map[string]string{}
	for _, p := range platforms {
		for _, f := range p.files {
			switch f.name {
			case "medusa":
				info, err := buildinfo.Read(bytes.NewReader(f.data))
				if err != nil {
					return nil, fmt.Errorf("read provenance of %s: %w", f.name, err)
				}
				internal["go"] = info.GoVersion
				for _, s := range info.Settings {
					switch s.Key {
					case "vcs.revision":
						source.Digest["gitCommit"] = s.Value
					case "vcs.modified":
						external["uncommittedChanges"] = s.Value
					}
				}
			case "lib/libmedusa_interpose.so":
				compiler, err := compilerOf(f.data)
				if err != nil {
					return nil, fmt.Errorf("read provenance of %s: %w", f.name, err)
				}
				internal["cc."+p.arch] = compiler
			}
		}
	}
	s := statement{"https://in-toto.io/Statement/v1", subjects, "https://slsa.dev/provenance/v1", provenance{
		buildDefinition{"urn:medusa:make-dist:v1", external, internal, []resource{source}}, runDetails{builder{builderID}}}}
	out, err := json.MarshalIndent(s, "", "  ")
	return append(out, '\n'), err
}

// compilerOf reads the notes of compiler and linker in a shared object.
func compilerOf(object []byte) (string, error) {
	e, err := elf.NewFile(bytes.NewReader(object))
	if err != nil {
		return "", err
	}
	section := e.Section(".comment")
	if section == nil {
		return "unknown", nil
	}
	text, err := section.Data()
	first, _, _ := strings.Cut(string(text), "\x00")
	return first, err
}
