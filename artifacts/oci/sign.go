package oci

import (
	"bytes"
	"context"
	"crypto/ed25519"
	"encoding/json"
	"errors"
	"fmt"
	"slices"
	"strconv"
	"strings"
	"time"

	"github.com/opencontainers/image-spec/specs-go"
	ocispec "github.com/opencontainers/image-spec/specs-go/v1"
	"oras.land/oras-go/v2/registry/remote"

	"medusa/artifacts/trust"
)

// sign pushes a signature of a manifest as its referrer.
func sign(ctx context.Context, repo *remote.Repository, d ocispec.Descriptor, key ed25519.PrivateKey, version uint64) error {
	signature := trust.Sign(key, d.Digest.String(), version)
	notes := map[string]string{annotationKey: trust.KeyID(key.Public().(ed25519.PublicKey))}
	if version > 0 {
		notes[annotationVersion] = strconv.FormatUint(version, 10)
	}
	layer, config := describe(typeEd25519, signature), describe(typeEmpty, emptyJSON)
	data, err := json.Marshal(ocispec.Manifest{
		Versioned: specs.Versioned{SchemaVersion: 2}, MediaType: typeManifest, ArtifactType: typeSignature,
		Config: config, Layers: []ocispec.Descriptor{layer},
		Subject:     &ocispec.Descriptor{MediaType: d.MediaType, Digest: d.Digest, Size: d.Size},
		Annotations: notes,
	})
	if err != nil {
		return err
	}
	c := &Client{}
	if err := errors.Join(c.upload(ctx, repo, config, bytes.NewReader(emptyJSON)), c.upload(ctx, repo, layer, bytes.NewReader(signature))); err != nil {
		return fmt.Errorf("sign: %w", err)
	}
	if err := repo.Manifests().Push(ctx, describe(typeManifest, data), bytes.NewReader(data)); err != nil {
		return fmt.Errorf("sign: %w", err)
	}
	return nil
}

// verify returns the first signature among a manifest's referrers that the policy accepts. Every user who can write to the
// repository can add any number of signatures that claim a key, so verify tries all of them, up to a bound. Such a writer can
// prevent acceptance, as by deleting the artifact, but cannot get another artifact accepted.
func verify(ctx context.Context, repo *remote.Repository, d ocispec.Descriptor, reference string, manifest []byte, policy *trust.Policy) (*trust.Signature, error) {
	ids := policy.Candidates(reference)
	var candidates []ocispec.Descriptor
	seen := 0
	err := repo.Referrers(ctx, d, typeSignature, func(page []ocispec.Descriptor) error {
		for _, r := range page {
			seen++
			if slices.Contains(ids, r.Annotations[annotationKey]) && r.Size <= maxSignature {
				candidates = append(candidates, r)
			}
		}
		return nil
	})
	if err != nil {
		return nil, fmt.Errorf("look for signatures: %w", err)
	}
	why, read := fmt.Sprintf("%d signatures found, %d by a key of this name", seen, len(candidates)), int64(0)
	for i, r := range candidates {
		// mutant: all signatures are tried
		if read += r.Size + ed25519.SignatureSize; i == maxSignatures || read > maxSignatureRead {
			why += fmt.Sprintf("; gave up after %d: no more than %d are tried, nor %d bytes", i, maxSignatures, maxSignatureRead)
			break
		}
		s, err := fetchSignature(ctx, repo, r)
		if err == nil {
			_, err = policy.Accept(reference, manifest, s)
		}
		if err == nil {
			s.Verified = time.Now().UTC()
			return s, nil
		}
		if ctx.Err() != nil {
			return nil, context.Cause(ctx)
		}
		if !errors.Is(err, trust.ErrSignature) {
			why += "; " + err.Error()
		}
	}
	return nil, fmt.Errorf("verify %s: %w by key %s (%s)", d.Digest, trust.ErrSignature, strings.Join(ids, " or "), why)
}

// fetchSignature fetches a signature, and the key and version that it claims.
func fetchSignature(ctx context.Context, repo *remote.Repository, r ocispec.Descriptor) (*trust.Signature, error) {
	data, err := fetchAll(ctx, repo.Manifests(), r, maxSignature)
	if err != nil {
		return nil, err
	}
	m, err := parseManifest(data, typeSignature, typeEd25519)
	if err != nil {
		return nil, err
	}
	s := &trust.Signature{Key: m.Annotations[annotationKey]}
	if version := m.Annotations[annotationVersion]; version != "" {
		if s.Version, err = strconv.ParseUint(version, 10, 64); err != nil {
			return nil, fmt.Errorf("%s: %s: %w", r.Digest, annotationVersion, err)
		}
	}
	s.Bytes, err = fetchAll(ctx, repo.Blobs(), m.Layers[0], ed25519.SignatureSize)
	return s, err
}
