// Package oci moves artifacts to and from OCI registries, and into images.
//
// In: an artifact file and a reference such as registry.example/llm/llama:h200. Out: a manifest in the registry, an
// artifact in the local cache (package store), or an image with the artifact in its last layer. What can fail: the
// registry and the way to it, references that lead to something else (ErrNotArtifact) or to several artifacts
// (*AmbiguousError), bytes that are not those which a digest names, and signatures (trust.ErrSignature).
//
// Nothing of an artifact is fetched before its signature is checked, where one is asked for, and nothing is visible in
// the cache before all digests are. README.md lists media types and annotations.
package oci

import "errors"

// ErrNotArtifact says that a reference does not lead to an artifact of Medusa.
var ErrNotArtifact = errors.New("not a Medusa artifact")
