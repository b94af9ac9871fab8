package oci

import (
	"bytes"
	"context"
	"crypto/ed25519"
	"encoding/json"
	"errors"
	"fmt"

	"github.com/opencontainers/image-spec/specs-go"
	ocispec "github.com/opencontainers/image-spec/specs-go/v1"
	"oras.land/oras-go/v2/registry/remote"

	"medusa/artifacts/trust"
)

// sign pushes a signature of a manifest as its referrer.
func sign(ctx context.Context, repo *remote.Repository, d ocispec.Descriptor, key ed25519.PrivateKey) error {
	signature := trust.Sign(key, d.Digest.String())
	layer, config := describe(TypeEd25519, signature), describe(typeEmpty, emptyJSON)
	data, err := json.Marshal(ocispec.Manifest{
		Versioned: specs.Versioned{SchemaVersion: 2}, MediaType: typeManifest, ArtifactType: TypeSignature,
		Config: config, Layers: []ocispec.Descriptor{layer},
		Subject:     &ocispec.Descriptor{MediaType: d.MediaType, Digest: d.Digest, Size: d.Size},
		Annotations: map[string]string{AnnotationKey: trust.KeyID(key.Public().(ed25519.PublicKey))},
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

// verify succeeds where a referrer of the manifest is a signature of it by the key.
func verify(ctx context.Context, repo *remote.Repository, d ocispec.Descriptor, key ed25519.PublicKey) error {
	id := trust.KeyID(key)
	var candidates []ocispec.Descriptor
	seen := 0
	err := repo.Referrers(ctx, d, TypeSignature, func(page []ocispec.Descriptor) error {
		for _, r := range page {
			seen++
			// The annotation is only for finding it: who can write to the repository can add signatures without end.
			if r.Annotations[AnnotationKey] == id && len(candidates) < maxSignatures {
				candidates = append(candidates, r)
			}
		}
		return nil
	})
	if err != nil {
		return fmt.Errorf("look for signatures: %w", err)
	}
	for _, r := range candidates {
		signature, err := fetchSignature(ctx, repo, r)
		if err == nil {
			err = trust.Verify(key, d.Digest.String(), signature)
		}
		if err == nil {
			return nil
		}
		if ctx.Err() != nil {
			return context.Cause(ctx)
		}
	}
	return fmt.Errorf("verify %s: %w by key %s (%d signatures found, %d by a key of this name)", d.Digest, trust.ErrSignature, id, seen, len(candidates))
}

func fetchSignature(ctx context.Context, repo *remote.Repository, r ocispec.Descriptor) ([]byte, error) {
	data, err := fetchAll(ctx, repo.Manifests(), r, maxManifest)
	if err != nil {
		return nil, err
	}
	m, err := parseManifest(data, TypeSignature, TypeEd25519)
	if err != nil {
		return nil, err
	}
	return fetchAll(ctx, repo.Blobs(), m.Layers[0], ed25519.SignatureSize)
}
