package oci

import (
	"context"
	"errors"
	"fmt"
	"io"
	"net/http"
	"os"
	"time"

	ocispec "github.com/opencontainers/image-spec/specs-go/v1"
	"oras.land/oras-go/v2/errdef"
	"oras.land/oras-go/v2/registry/remote"
	"oras.land/oras-go/v2/registry/remote/errcode"

	"medusa/artifacts"
	"medusa/artifacts/store"
	"medusa/artifacts/trust"
)

// PullOptions are the options of Pull.
type PullOptions struct {
	Match  []artifacts.Factor // selects an artifact of an index
	Verify *trust.Policy      // keys of which one must have signed; nil, or a policy without keys: no signature is required
}

// Pull fetches the artifact that a reference names into the store, gives it the reference as its name, and pins it. It returns
// the manifest's digest, which covers the artifact and all statements about it.
func (c *Client) Pull(ctx context.Context, ref string, into *store.Store, o PullOptions) (*store.Pin, string, error) {
	pin, d, err := c.pull(ctx, ref, into, o)
	if err != nil {
		return nil, "", fmt.Errorf("pull %s: %w", ref, err)
	}
	return pin, d.Digest.String(), nil
}

func (c *Client) pull(ctx context.Context, ref string, into *store.Store, o PullOptions) (*store.Pin, ocispec.Descriptor, error) {
	none := ocispec.Descriptor{}
	repo, err := c.repository(ref)
	if err != nil {
		return nil, none, err
	}
	if repo.Reference.Reference == "" {
		return nil, none, errors.New("the reference needs a tag or a digest")
	}
	d, err := repo.Resolve(ctx, repo.Reference.Reference)
	if err != nil {
		return nil, none, err
	}
	d, data, err := single(ctx, repo, d, o.Match)
	if err != nil {
		return nil, none, err
	}
	// The manifest's bytes match their digest. Only a signature shows that this digest is the intended one, so check it before
	// fetching more.
	proof := trust.Proof{Reference: ref, Pulled: time.Now().UTC(), Manifest: data}
	// mutant: signature before anything else is fetched
	if o.Verify != nil && (o.Verify.Required || len(o.Verify.Keys) > 0) {
		signature, err := verify(ctx, repo, d, ref, data, o.Verify)
		if err == nil {
			proof.Signatures = append(proof.Signatures, *signature)
		} else if o.Verify.Required || !errors.Is(err, trust.ErrSignature) {
			return nil, none, err
		}
	}
	m, err := parseManifest(data, typeArtifact, typeFile)
	if err != nil {
		return nil, none, err
	}
	identity, err := fetchAll(ctx, repo.Blobs(), m.Config, maxConfig)
	if err != nil {
		return nil, none, err
	}
	file := m.Layers[0]
	origin := func() error { return Remember(into, file.Digest.String(), []trust.Proof{proof}) }
	pin, err := into.Add(ctx, file.Digest.String(), file.Size, ref, origin, func(ctx context.Context, f *os.File, have int64) error {
		return c.download(ctx, repo, file, f, have)
	})
	if err != nil {
		return nil, none, err
	}
	if err := checkIdentity(pin.Path, m.Config, identity); err != nil {
		return nil, none, errors.Join(err, pin.Close())
	}
	return pin, d, nil
}

// Remember stores proofs beside an artifact of the cache.
func Remember(into *store.Store, digest string, more []trust.Proof) error {
	data, err := into.Proofs(digest)
	if err != nil {
		return err
	}
	proofs, err := trust.Decode(data)
	if err != nil {
		return err
	}
	if data, err = trust.Encode(trust.Merge(proofs, more)); err != nil {
		return err
	}
	return into.SetProofs(digest, data)
}

// single resolves a reference to one artifact's manifest.
func single(ctx context.Context, repo *remote.Repository, d ocispec.Descriptor, match []artifacts.Factor) (ocispec.Descriptor, []byte, error) {
	data, err := fetchAll(ctx, repo.Manifests(), d, maxManifest)
	if err != nil || d.MediaType != typeIndex {
		return d, data, err
	}
	index, err := parseIndex(data)
	if err != nil {
		return d, nil, err
	}
	if d, err = choose(index, match); err != nil {
		return d, nil, err
	}
	data, err = fetchAll(ctx, repo.Manifests(), d, maxManifest)
	return d, data, err
}

// checkIdentity demands that the registry's identity document matches the identity inside the artifact.
func checkIdentity(path string, config ocispec.Descriptor, fetched []byte) error {
	m, err := artifacts.ReadManifest(path)
	if err != nil {
		return err
	}
	// mutant: what a registry shows is what the artifact says
	if !sameBytes(m.Identity, config, fetched) {
		return fmt.Errorf("%w: its identity is %s, its config says %s", errNotArtifact, m.Identity.Digest(), config.Digest)
	}
	return nil
}

// failures bounds the consecutive connections that end without any byte.
const failures = 6

// download writes a blob from offset have on, over as many connections as it takes. The store checks the bytes.
func (c *Client) download(ctx context.Context, repo *remote.Repository, d ocispec.Descriptor, f *os.File, have int64) error {
	for failed := 0; have < d.Size; {
		c.progress(have, d.Size)
		n, err := c.receive(ctx, repo, d, f, have)
		have += n
		switch {
		case err == nil:
			continue
		case ctx.Err() != nil:
			return context.Cause(ctx)
		case n > 0:
			failed = 0
		}
		if failed++; failed >= failures || !transient(err) {
			return fmt.Errorf("download %s: %d of %d bytes: %w", d.Digest, have, d.Size, err)
		}
		if err := pause(ctx, failed); err != nil {
			return err
		}
	}
	c.progress(d.Size, d.Size)
	return nil
}

// diskError is an error of the local disk.
type diskError struct{ error }

func (e diskError) Unwrap() error { return e.error }

// receive reads from one connection. A connection that ends early is an error.
func (c *Client) receive(ctx context.Context, repo *remote.Repository, d ocispec.Descriptor, f *os.File, have int64) (int64, error) {
	body, err := repo.Blobs().Fetch(ctx, d)
	if err != nil {
		return 0, err
	}
	defer body.Close()
	if have > 0 {
		if s, ok := body.(io.Seeker); ok {
			_, err = s.Seek(have, io.SeekStart)
		} else { // a registry without ranges sends the whole blob again
			_, err = io.CopyN(io.Discard, body, have)
		}
		if err != nil {
			return 0, err
		}
	}
	done := int64(0)
	buf := make([]byte, 256<<10)
	for have+done < d.Size {
		n, err := body.Read(buf[:min(int64(len(buf)), d.Size-have-done)])
		if w, err := f.Write(buf[:n]); err != nil {
			return done + int64(w), diskError{err}
		}
		done += int64(n)
		c.progress(have+done, d.Size)
		if have+done == d.Size {
			break
		}
		if errors.Is(err, io.EOF) {
			return done, io.ErrUnexpectedEOF
		}
		if err != nil {
			return done, err
		}
	}
	return done, nil
}

// transient says whether trying again may help. It does not after a failure of the disk, nor if the registry answered with an
// error other than 408, 429 or 5xx.
func transient(err error) bool {
	var disk diskError
	var answer *errcode.ErrorResponse
	switch {
	case errors.As(err, &disk), errors.Is(err, errdef.ErrNotFound), errors.Is(err, errNotArtifact):
		return false
	case errors.As(err, &answer):
		return answer.StatusCode >= 500 || answer.StatusCode == http.StatusTooManyRequests || answer.StatusCode == http.StatusRequestTimeout
	}
	return true
}
