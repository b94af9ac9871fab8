package oci

// The media types. README.md describes the use of each.
const (
	typeArtifact  = "application/vnd.medusa.artifact.v1"       // artifactType of a manifest that holds an artifact
	typeIdentity  = "application/vnd.medusa.identity.v1+json"  // its config: the canonical identity document
	typeFile      = "application/vnd.medusa.artifact.file.v1"  // its one layer: the artifact file
	typeSignature = "application/vnd.medusa.signature.v1"      // artifactType of a manifest that signs its subject
	typeEd25519   = "application/vnd.medusa.signature.ed25519" // its one layer: the 64 bytes of the signature
	typeIndex     = "application/vnd.oci.image.index.v1+json"
	typeManifest  = "application/vnd.oci.image.manifest.v1+json"
	typeEmpty     = "application/vnd.oci.empty.v1+json"
	typeLayer     = "application/vnd.oci.image.layer.v1.tar"
	dockerList    = "application/vnd.docker.distribution.manifest.list.v2+json"
	dockerImage   = "application/vnd.docker.distribution.manifest.v2+json"
	dockerLayer   = "application/vnd.docker.image.rootfs.diff.tar"
)

// The annotations, beside those of the OCI image specification.
const (
	annotationIdentity = "io.medusa.identity" // digest of the identity document
	annotationFactor   = "io.medusa.factor."  // followed by a factor's key, on manifests and on index entries: the factor's value
	annotationKey      = "io.medusa.key"      // on signatures: the beginning of the key's SHA-256
	annotationVersion  = "io.medusa.version"  // on signatures: the signed version; absent: 0

	annotationTitle   = "org.opencontainers.image.title"
	annotationCreated = "org.opencontainers.image.created"
	annotationBase    = "org.opencontainers.image.base.name"
	annotationBaseSum = "org.opencontainers.image.base.digest"
)

// Bounds on the memory that a registry's answers can take.
const (
	maxManifest      = 4 << 20 // bytes of a manifest or an index, the least that registries must accept
	maxConfig        = 1 << 20
	maxFactor        = 256      // bytes of a factor's value that becomes an annotation
	maxSignature     = 16 << 10 // bytes of the manifest of a signature
	maxSignatures    = 500      // signatures to try, with two requests each
	maxSignatureRead = 4 << 20  // bytes of the signatures tried, all together
)

// emptyJSON is the content of an empty config.
var emptyJSON = []byte("{}")
