// Package store is the local cache of artifacts: a directory in which each lies once, under its digest.
//
//	artifacts/HEX.medusa  whole artifacts; HEX is the SHA-256 of the file, its modification time the last use
//	checked/HEX           which file was read and had its digest
//	names/NAME            the digest that a name stands for; NAME is escaped as in a URL path
//	proofs/HEX            where a pulled artifact came from, and its signatures (package trust)
//	drivers/HEX           other drivers that this machine has checked an artifact with; also of artifacts that lie elsewhere
//	partial/HEX           downloads that are not finished, to be continued
//	unpacked/HEX/         what is unpacked from layers (caches of JIT compilers); HEX is the SHA-256 of the packed layer
//	lock                  held while artifacts are evicted
//
// In: bytes with their digest. Out: paths of whole, checked artifacts that stay while they are pinned. What can fail:
// bytes that do not have their digest (ErrDigest), names that stand for nothing (ErrNotFound), artifacts that do not fit
// the limit (ErrTooLarge), folders and files that others own or can write to (*private.Error), and the disk.
//
// A file is not believed for its name: whoever pins an artifact gets one whose bytes have been read and have their digest, or
// for which a record says so that nobody else could have written or made wrong.
//
// Any number of processes may use a store at once, and may be killed at any time. Every lock is an flock, which ends
// with its process: a writer holds an exclusive one on its partial file, a user a shared one on its artifact or folder, and only
// what nobody has locked is evicted, the least recently used first. An artifact appears by a rename after its bytes have
// been synced and checked.
package store

import "errors"

var (
	// ErrDigest says that bytes do not have the digest under which they were to be stored.
	ErrDigest = errors.New("content does not match its digest")
	// ErrNotFound says that the store has no such artifact.
	ErrNotFound = errors.New("not in the cache")
	// ErrTooLarge says that an artifact is larger than the store may grow.
	ErrTooLarge = errors.New("larger than the cache may grow")
)
