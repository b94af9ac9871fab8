// Package artifacts is the artifact file: one (model, GPU) pair's graph IR, KV profile, identity, stage times and
// verification record, compressed and checksummed.
//
// In: an Artifact, or a path. Out: a file under its final name, complete or not at all, or what such a file holds. What
// can fail: a damaged, truncated, empty or foreign file (*CorruptError, ErrCorrupt), one of a format that is not read (ErrVersion),
// and an identity that does not fit (*Mismatch, ErrIncompatible). README.md describes the format apart from this code.
package artifacts

//go:generate go run ../graphir/gen artifact.proto artifactpb/artifact.pb.go
