package oci

import (
	"bytes"
	"encoding/json"
	"fmt"
	"maps"
	"slices"
	"strings"
	"time"

	"github.com/opencontainers/go-digest"
	"github.com/opencontainers/image-spec/specs-go"
	ocispec "github.com/opencontainers/image-spec/specs-go/v1"

	"medusa/artifacts"
)

func describe(mediaType string, data []byte) ocispec.Descriptor {
	return ocispec.Descriptor{MediaType: mediaType, Digest: digest.FromBytes(data), Size: int64(len(data))}
}

// annotations returns the annotations of an artifact's manifest and of its index entry.
func annotations(m *artifacts.Manifest) map[string]string {
	out := map[string]string{annotationIdentity: m.Identity.Digest()}
	for _, f := range m.Identity {
		if artifacts.LevelOf(f.Key) != artifacts.Noted && len(f.Value) <= maxFactor {
			out[annotationFactor+f.Key] = f.Value
		}
	}
	if !m.Created.IsZero() {
		out[annotationCreated] = m.Created.UTC().Format(time.RFC3339)
	}
	return out
}

// artifactManifest returns the manifest of an artifact. Equal artifacts give equal bytes.
func artifactManifest(m *artifacts.Manifest, config, file ocispec.Descriptor, subject *ocispec.Descriptor) ([]byte, error) {
	return json.Marshal(ocispec.Manifest{Versioned: specs.Versioned{SchemaVersion: 2}, MediaType: typeManifest, ArtifactType: typeArtifact,
		Config: config, Layers: []ocispec.Descriptor{file}, Subject: subject, Annotations: annotations(m)})
}

// parseManifest reads a manifest of the given artifact type with exactly one layer of the given media type.
func parseManifest(data []byte, artifactType, layerType string) (*ocispec.Manifest, error) {
	var m ocispec.Manifest
	if err := json.Unmarshal(data, &m); err != nil {
		return nil, fmt.Errorf("%w: %w", errNotArtifact, err)
	}
	switch {
	case m.SchemaVersion != 2 || m.MediaType != "" && m.MediaType != typeManifest:
		return nil, fmt.Errorf("%w: a manifest of schema %d and type %q", errNotArtifact, m.SchemaVersion, m.MediaType)
	case m.ArtifactType != artifactType:
		return nil, fmt.Errorf("%w: its artifact type is %q, not %s", errNotArtifact, m.ArtifactType, artifactType)
	case len(m.Layers) != 1 || m.Layers[0].MediaType != layerType:
		return nil, fmt.Errorf("%w: it has %d layers instead of one of type %s", errNotArtifact, len(m.Layers), layerType)
	}
	for _, d := range []ocispec.Descriptor{m.Config, m.Layers[0]} {
		if err := checkDescriptor(d); err != nil {
			return nil, err
		}
	}
	return &m, nil
}

func checkDescriptor(d ocispec.Descriptor) error {
	if err := d.Digest.Validate(); err != nil || d.Digest.Algorithm() != digest.SHA256 {
		return fmt.Errorf("%w: digest %q is not a SHA-256", errNotArtifact, d.Digest)
	}
	if d.Size < 0 {
		return fmt.Errorf("%w: %s has %d bytes", errNotArtifact, d.Digest, d.Size)
	}
	return nil
}

// parseIndex reads an image index.
func parseIndex(data []byte) (*ocispec.Index, error) {
	var index ocispec.Index
	if err := json.Unmarshal(data, &index); err != nil {
		return nil, fmt.Errorf("%w: %w", errNotArtifact, err)
	}
	if index.SchemaVersion != 2 {
		return nil, fmt.Errorf("%w: an index of schema %d", errNotArtifact, index.SchemaVersion)
	}
	for _, d := range index.Manifests {
		if err := checkDescriptor(d); err != nil {
			return nil, err
		}
	}
	return &index, nil
}

// AmbiguousError means that no artifact, or more than one, behind a reference has the requested factors.
type AmbiguousError struct {
	Match      []artifacts.Factor
	Found, All int      // number of artifacts with the factors, and of all artifacts
	Candidates []string // the factors that distinguish the matching artifacts, or all artifacts if none matches
}

func (e *AmbiguousError) Error() string {
	asked := "none was asked for"
	if len(e.Match) > 0 {
		parts := make([]string, len(e.Match))
		for i, f := range e.Match {
			parts[i] = f.Key + "=" + f.Value
		}
		asked = "asked for: " + strings.Join(parts, ", ")
	}
	return fmt.Sprintf("choose artifact: %d of %d have the factors (%s; choose with --gpu or --match): %s", e.Found, e.All, asked,
		strings.Join(e.Candidates, "; "))
}

// choose returns the one artifact in an index that has all the factors.
func choose(index *ocispec.Index, match []artifacts.Factor) (ocispec.Descriptor, error) {
	var all, found []ocispec.Descriptor
	for _, d := range index.Manifests {
		if d.ArtifactType != typeArtifact {
			continue
		}
		all = append(all, d)
		// mutant: entry of an index for this GPU
		if !slices.ContainsFunc(match, func(f artifacts.Factor) bool { return d.Annotations[annotationFactor+f.Key] != f.Value }) {
			found = append(found, d)
		}
	}
	switch len(found) {
	case 1:
		return found[0], nil
	case 0:
		if len(all) == 0 {
			return ocispec.Descriptor{}, fmt.Errorf("%w: the index lists none", errNotArtifact)
		}
		return ocispec.Descriptor{}, &AmbiguousError{Match: match, All: len(all), Candidates: labels(all, match)}
	}
	return ocispec.Descriptor{}, &AmbiguousError{Match: match, Found: len(found), All: len(all), Candidates: labels(found, nil)}
}

// labels distinguishes entries of an index by the factors in which they differ and by the requested ones.
func labels(entries []ocispec.Descriptor, match []artifacts.Factor) []string {
	const longest = 60
	keys := map[string]bool{}
	for _, f := range match {
		keys[annotationFactor+f.Key] = true
	}
	for _, d := range entries {
		for key, value := range d.Annotations {
			if strings.HasPrefix(key, annotationFactor) && value != entries[0].Annotations[key] {
				keys[key] = true
			}
		}
		for key := range entries[0].Annotations {
			if _, has := d.Annotations[key]; !has && strings.HasPrefix(key, annotationFactor) {
				keys[key] = true
			}
		}
	}
	var out []string
	for _, d := range entries {
		text := d.Digest.String()
		for _, key := range slices.Sorted(maps.Keys(keys)) {
			value := d.Annotations[key]
			if len(value) > longest {
				value = strings.ToValidUTF8(value[:longest], "") + "..."
			}
			text += fmt.Sprintf(" %s=%q", strings.TrimPrefix(key, annotationFactor), value)
		}
		out = append(out, text)
	}
	return out
}

// withEntry returns the index with a new artifact. It replaces the entry of the same identity, or comes last.
func withEntry(index *ocispec.Index, entry ocispec.Descriptor) ([]byte, error) {
	out := ocispec.Index{Versioned: specs.Versioned{SchemaVersion: 2}, MediaType: typeIndex}
	if index != nil {
		out.Annotations, out.Manifests = index.Annotations, slices.Clone(index.Manifests)
	}
	same := func(d ocispec.Descriptor) bool {
		return d.Digest == entry.Digest ||
			d.ArtifactType == typeArtifact && d.Annotations[annotationIdentity] == entry.Annotations[annotationIdentity]
	}
	if i := slices.IndexFunc(out.Manifests, same); i >= 0 {
		out.Manifests[i] = entry
	} else {
		out.Manifests = append(out.Manifests, entry)
	}
	return json.Marshal(out)
}

// sameBytes says whether an identity has the digest that the manifest gives its config.
func sameBytes(id artifacts.Identity, config ocispec.Descriptor, fetched []byte) bool {
	return bytes.Equal(id.Document(), fetched) && digest.FromBytes(fetched) == config.Digest
}
