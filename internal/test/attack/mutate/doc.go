// Package mutate changes well-formed artifacts and traces the way somebody would who knows their formats: fields, lists and
// indices inside the messages, with digests, lengths and checksums made right again, so that a change is met by the code that
// it is about and not by a checksum.
//
// In: the bytes of an artifact or the records of a trace, and a source of randomness that decides everything. Out: the bytes
// of a mutant and one line that describes the change. Fails: if the input cannot be taken apart. The reader and the writer
// of the container are written from artifacts/README.md and share nothing with package artifacts, which they test.
package mutate
