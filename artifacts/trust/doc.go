// Package trust signs artifacts with Ed25519 keys, and decides whether one may be used.
//
// In: PEM files as OpenSSL makes them (openssl genpkey -algorithm ed25519, openssl pkey -pubout), or as Generate does, the
// digest of what is signed, and a policy (a YAML file): which keys count, for which references, until when, from which version
// on. Out: signatures of 64 bytes, proofs that are kept beside an artifact, and judgements. What can fail: keys of another
// kind or in another form, signatures that do not fit (ErrSignature), policies that cannot be understood, and artifacts that
// a policy refuses (ErrUntrusted).
//
// What is signed is a text: "medusa signature v2", the digest ("sha256:" and hexadecimal digits) of the OCI manifest, which
// names everything else by digest, and "version N". Without a version it is "medusa signature v1" and the digest. The first
// line keeps a signature from meaning something elsewhere.
//
// A proof holds the manifest and its signatures, so each use checks them again: a key that expired or was taken out of the
// policy counts no longer, and no record of an earlier check is believed.
package trust
