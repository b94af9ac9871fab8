// Package mutate changes well-formed artifacts and traces as an attacker would who knows their formats: fields, lists and
// indices inside the messages, with digests, lengths and checksums made right again. So a change reaches the code that it is
// about, and no checksum refuses it first.
//
// In: the bytes of an artifact or the records of a trace, and a source of randomness that decides everything. Out: the bytes
// of a mutant and one line that describes the change. Fails: if the input cannot be taken apart. The reader and the writer
// of the container are written from artifacts/README.md and share no code with package artifacts, which they test.
package mutate
