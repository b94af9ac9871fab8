package oci

import (
	"bytes"
	"context"
	"crypto/ed25519"
	"crypto/sha256"
	"errors"
	"fmt"
	"io"
	"os"
	"path/filepath"
	"time"

	"github.com/opencontainers/go-digest"
	ocispec "github.com/opencontainers/image-spec/specs-go/v1"
	"oras.land/oras-go/v2/errdef"
	"oras.land/oras-go/v2/registry/remote"

	"medusa/artifacts"
)

// PushOptions are the options of Push.
type PushOptions struct {
	Subject string             // reference in the same repository that the artifact belongs to, such as the model's image; may be empty
	Add     bool               // add the artifact to the index that the tag names
	Sign    ed25519.PrivateKey // signs the manifest; may be nil
	Version uint64             // signed with the manifest, so that older artifacts can be refused; 0: none
}

// Push uploads the artifact at path and tags it with the reference. It returns the manifest's digest.
func (c *Client) Push(ctx context.Context, path, ref string, o PushOptions) (string, error) {
	d, err := c.push(ctx, path, ref, o)
	if err != nil {
		return "", fmt.Errorf("push %s: %w", ref, err)
	}
	return d.Digest.String(), nil
}

func (c *Client) push(ctx context.Context, path, ref string, o PushOptions) (ocispec.Descriptor, error) {
	none := ocispec.Descriptor{}
	repo, err := c.repository(ref)
	if err != nil {
		return none, err
	}
	tag := repo.Reference.Reference
	if tag == "" || repo.Reference.ValidateReferenceAsTag() != nil {
		return none, errors.New("the reference needs a tag")
	}
	art, err := artifacts.Check(path)
	if err != nil {
		return none, err
	}
	f, file, err := describeFile(path, typeFile)
	if err != nil {
		return none, err
	}
	defer f.Close()
	file.Annotations = map[string]string{annotationTitle: filepath.Base(path)}
	identity := art.Identity.Document()
	config := describe(typeIdentity, identity)
	var subject *ocispec.Descriptor
	if o.Subject != "" {
		if subject, err = c.resolveSubject(ctx, repo, o.Subject); err != nil {
			return none, err
		}
	}
	m := &artifacts.Manifest{Identity: art.Identity, Created: art.Created}
	data, err := artifactManifest(m, config, file, subject)
	if err != nil {
		return none, err
	}
	if err := c.upload(ctx, repo, config, bytes.NewReader(identity)); err != nil {
		return none, err
	}
	if err := c.upload(ctx, repo, file, f); err != nil {
		return none, err
	}
	d := describe(typeManifest, data)
	if !o.Add {
		err = repo.Manifests().PushReference(ctx, d, bytes.NewReader(data), tag)
	} else {
		err = pushAdded(ctx, repo, tag, d, data, annotations(m))
	}
	if err == nil && o.Sign != nil {
		err = sign(ctx, repo, d, o.Sign, o.Version)
	}
	return d, err
}

// resolveSubject finds the manifest that a reference names. Registries keep referrers in their subject's repository.
func (c *Client) resolveSubject(ctx context.Context, repo *remote.Repository, ref string) (*ocispec.Descriptor, error) {
	other, err := c.repository(ref)
	if err != nil {
		return nil, err
	}
	if other.Reference.Registry != repo.Reference.Registry || other.Reference.Repository != repo.Reference.Repository {
		return nil, fmt.Errorf("subject %s is not in the repository %s/%s (referrers live with their subject)", ref,
			repo.Reference.Registry, repo.Reference.Repository)
	}
	d, err := other.Resolve(ctx, other.Reference.ReferenceOrDefault())
	if err != nil {
		return nil, fmt.Errorf("resolve subject: %w", err)
	}
	return &ocispec.Descriptor{MediaType: d.MediaType, Digest: d.Digest, Size: d.Size}, nil
}

// pushAdded pushes the manifest by its digest, and under the tag an index that includes it.
func pushAdded(ctx context.Context, repo *remote.Repository, tag string, d ocispec.Descriptor, data []byte, notes map[string]string) error {
	if err := repo.Manifests().Push(ctx, d, bytes.NewReader(data)); err != nil {
		return err
	}
	d.ArtifactType, d.Annotations = typeArtifact, notes
	var index *ocispec.Index
	old, err := repo.Resolve(ctx, tag)
	switch {
	case errors.Is(err, errdef.ErrNotFound):
	case err != nil:
		return err
	case old.Digest == d.Digest:
	default:
		if index, err = asIndex(ctx, repo, old); err != nil {
			return fmt.Errorf("add to the manifest of the tag: %w", err)
		}
	}
	out, err := withEntry(index, d)
	if err != nil {
		return err
	}
	return repo.Manifests().PushReference(ctx, describe(typeIndex, out), bytes.NewReader(out), tag)
}

// asIndex reads an index, or makes one from a single artifact.
func asIndex(ctx context.Context, repo *remote.Repository, d ocispec.Descriptor) (*ocispec.Index, error) {
	data, err := fetchAll(ctx, repo.Manifests(), d, maxManifest)
	if err != nil {
		return nil, err
	}
	if d.MediaType == typeIndex {
		return parseIndex(data)
	}
	m, err := parseManifest(data, typeArtifact, typeFile)
	if err != nil {
		return nil, err
	}
	d.ArtifactType, d.Annotations = typeArtifact, m.Annotations
	return &ocispec.Index{Manifests: []ocispec.Descriptor{d}}, nil
}

// describeFile opens a file and returns its descriptor.
func describeFile(path, mediaType string) (*os.File, ocispec.Descriptor, error) {
	f, err := os.Open(path)
	if err != nil {
		return nil, ocispec.Descriptor{}, err
	}
	sum := sha256.New()
	n, err := io.Copy(sum, f)
	if err != nil {
		_ = f.Close()
		return nil, ocispec.Descriptor{}, err
	}
	return f, ocispec.Descriptor{MediaType: mediaType, Digest: digest.NewDigest(digest.SHA256, sum), Size: n}, nil
}

// uploads bounds the attempts at one upload. Each starts again, because registries differ in how they resume.
const uploads = 4

// upload pushes a blob unless the repository has it.
func (c *Client) upload(ctx context.Context, repo *remote.Repository, d ocispec.Descriptor, body io.ReaderAt) error {
	for attempt := 1; ; attempt++ {
		exists, err := repo.Blobs().Exists(ctx, d)
		if err == nil && exists {
			c.progress(d.Size, d.Size)
			return nil
		}
		if err == nil {
			r := &reporting{r: io.NewSectionReader(body, 0, d.Size), report: func(n int64) { c.progress(n, d.Size) }}
			err = repo.Blobs().Push(ctx, d, r)
		}
		if err == nil {
			return nil
		}
		if attempt == uploads || ctx.Err() != nil || !transient(err) {
			return fmt.Errorf("upload %s: %w", d.Digest, err)
		}
		if err := pause(ctx, attempt); err != nil {
			return err
		}
	}
}

type reporting struct {
	r      io.Reader
	done   int64
	report func(done int64)
}

func (r *reporting) Read(p []byte) (int, error) {
	n, err := r.r.Read(p)
	r.done += int64(n)
	r.report(r.done)
	return n, err
}

// firstPause is the pause after the first failure. Each further pause doubles.
var firstPause = 100 * time.Millisecond

// pause waits longer after each failure.
func pause(ctx context.Context, failures int) error {
	select {
	case <-ctx.Done():
		return context.Cause(ctx)
	case <-time.After(firstPause << min(failures-1, 5)):
		return nil
	}
}
