// Package store is the local cache of artifacts: a directory that has each artifact once, under its digest.
//
//	artifacts/HEX.medusa  complete artifacts; HEX is the SHA-256 of the file, its modification time is the last use
//	checked/HEX           identifies the file whose digest was checked
//	names/NAME            the digest behind a name; NAME is escaped as in a URL path
//	proofs/HEX            the origin of a pulled artifact, and its signatures (package trust)
//	drivers/HEX           other drivers with which this machine has checked an artifact, which may lie outside of the cache
//	partial/HEX           unfinished downloads, to be continued
//	unpacked/HEX/         an unpacked directory (a cache of a JIT compiler); HEX is the SHA-256 of the packed directory
//	lock                  locked during eviction
//
// In: bytes with their digest. Out: paths of complete, checked artifacts that stay while they are pinned. Fails: for bytes that
// do not match their digest (ErrDigest), unknown names (ErrNotFound), artifacts that exceed the limit (errTooLarge), and folders
// and files that other users own or can write to (*private.Error); and with the disk's errors.
//
// The store does not trust a file's name. Pin either reads the bytes and checks their digest, or finds a record of an earlier
// check that no other user could have written or made wrong.
//
// Any number of processes may use a store at once, and may be killed at any time. Every lock is an flock, which ends with its
// process. A writer holds an exclusive lock on its partial file, and a user holds a shared lock on its artifact or folder.
// Eviction removes only unlocked files, the least recently used first. An artifact appears by a rename after its bytes have been
// synced and checked.
package store

import "errors"

var (
	// ErrDigest means that bytes do not have the digest under which they were to be stored.
	ErrDigest = errors.New("content does not match its digest")
	// ErrNotFound means that the store lacks the artifact.
	ErrNotFound = errors.New("not in the cache")
	// errTooLarge means that an artifact is larger than the store's limit.
	errTooLarge = errors.New("larger than the cache may grow")
)
