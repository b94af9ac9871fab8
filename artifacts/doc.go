// Package artifacts is the artifact file: one (model, GPU) pair's graph IR, KV profile, identity, stage times and verification
// record, compressed and checksummed.
//
// In: an Artifact, or a path. Out: a complete file under its final name, or the contents of such a file. A write that fails
// leaves no file. Fails: for a damaged, truncated, empty or foreign file (*CorruptError, ErrCorrupt), for a file of an
// unknown format version (ErrVersion), and for an identity that does not match (*Mismatch, ErrIncompatible). README.md
// describes the format apart from this code.
package artifacts

//go:generate go run ../graphir/gen artifact.proto artifactpb/artifact.pb.go
