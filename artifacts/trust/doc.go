// Package trust signs artifacts with Ed25519 keys, and decides whether an artifact may be used.
//
// In: PEM files from OpenSSL (openssl genpkey -algorithm ed25519, openssl pkey -pubout) or from Generate; the digest to sign;
// and a policy. A policy is a YAML file that says which keys are accepted, for which references, until when, and from which
// version on. Out: signatures of 64 bytes, proofs that are stored beside an artifact, and judgements. Fails: for keys of
// another kind or form, signatures that do not match (ErrSignature), policies that cannot be parsed, and artifacts that a
// policy refuses (ErrUntrusted).
//
// The signed message is a text: the line "medusa signature v2", the digest ("sha256:" and hexadecimal digits) of the OCI
// manifest, and "version N". The manifest names everything else by digest. Without a version, the text is "medusa signature v1"
// and the digest. The first line keeps a signature from being valid for another purpose.
//
// A proof has the manifest and its signatures, so each use checks them again. A key that expired or left the policy is not
// accepted any more, and no record of an earlier check is trusted.
package trust
