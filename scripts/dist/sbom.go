package main

import (
	"bytes"
	"crypto/sha256"
	"debug/buildinfo"
	"fmt"
	"maps"
	"slices"
	"strings"

	cdx "github.com/CycloneDX/cyclonedx-go"
)

// plainC lists the binaries without Go code. They contain only this project's source and libc.
var plainC = []string{"lib/libmedusa_interpose.so"}

// billOfMaterials lists a tree's binaries as a CycloneDX document: each with its hash, and with the Go modules that the linker
// noted in it. The document has no time and no serial number, so equal trees give equal documents.
func billOfMaterials(files []file, name, version string) ([]byte, error) {
	modules := map[string]cdx.Component{}
	var components []cdx.Component
	var dependencies []cdx.Dependency
	for _, f := range files {
		if f.mode != 0o755 {
			continue
		}
		binary := cdx.Component{BOMRef: name + "/" + f.name, Type: cdx.ComponentTypeFile, Name: f.name, Version: version,
			Hashes: &[]cdx.Hash{{Algorithm: cdx.HashAlgoSHA256, Value: fmt.Sprintf("%x", sha256.Sum256(f.data))}}}
		components = append(components, binary)
		uses := []string{}
		if !slices.Contains(plainC, f.name) {
			info, err := buildinfo.Read(bytes.NewReader(f.data))
			if err != nil {
				return nil, fmt.Errorf("list modules of %s: %w", f.name, err)
			}
			uses = append(uses, addModule(modules, "std", strings.TrimPrefix(info.GoVersion, "go")))
			for _, m := range info.Deps {
				if m.Replace != nil {
					m = m.Replace
				}
				uses = append(uses, addModule(modules, m.Path, m.Version))
			}
			slices.Sort(uses)
		}
		dependencies = append(dependencies, cdx.Dependency{Ref: binary.BOMRef, Dependencies: &uses})
	}
	for _, ref := range slices.Sorted(maps.Keys(modules)) {
		components = append(components, modules[ref])
	}
	bom := cdx.NewBOM()
	bom.Metadata = &cdx.Metadata{Component: &cdx.Component{BOMRef: name, Type: cdx.ComponentTypeApplication, Name: "medusa", Version: version}}
	bom.Components, bom.Dependencies = &components, &dependencies
	var out bytes.Buffer
	if err := cdx.NewBOMEncoder(&out, cdx.BOMFileFormatJSON).SetPretty(true).EncodeVersion(bom, cdx.SpecVersion1_6); err != nil {
		return nil, fmt.Errorf("write bill of materials: %w", err)
	}
	return out.Bytes(), nil
}

// addModule adds a module once and returns its package URL, which is its reference in the document.
func addModule(all map[string]cdx.Component, path, version string) string {
	url := "pkg:golang/" + path + "@" + version
	all[url] = cdx.Component{BOMRef: url, Type: cdx.ComponentTypeLibrary, Name: path, Version: version, PackageURL: url}
	return url
}
