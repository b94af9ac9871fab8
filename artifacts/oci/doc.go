// Package oci moves artifacts to and from OCI registries, and into images.
//
// In: an artifact file and a reference such as registry.example/llm/llama:h200. Out: a manifest in the registry, an artifact in
// the local cache (package store), or an image with the artifact in its last layer. Fails: with errors of the registry and the
// network; for references that lead to another object (errNotArtifact) or to several artifacts (*AmbiguousError); for bytes that
// do not match a digest; and for signatures (trust.ErrSignature).
//
// If the caller requires a signature, Pull checks it before it fetches any other part of the artifact. An artifact appears in the
// cache only after all digests were checked. README.md lists media types and annotations.
package oci

import "errors"

// errNotArtifact means that a reference does not lead to an artifact of Medusa.
var errNotArtifact = errors.New("not a Medusa artifact")
