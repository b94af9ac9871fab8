package oci

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"runtime"
	"slices"
	"strings"

	"github.com/opencontainers/go-digest"
	ocispec "github.com/opencontainers/image-spec/specs-go/v1"
	"oras.land/oras-go/v2"
	"oras.land/oras-go/v2/registry/remote"

	"medusa/artifacts"
	"medusa/internal/contract"
)

// bakedPath is the artifact's path in a baked image. The image's MEDUSA_ARTIFACT names it.
const bakedPath = "/opt/medusa/artifact.medusa"

// BakeOptions are the options of Bake.
type BakeOptions struct {
	Base     string // reference to the image
	Artifact string // path
	Target   string // reference to the new image
	Platform string // platform to take from a multi-platform base, such as linux/arm64; empty: linux on this process's architecture
	Python   string // interpreter that compiles the base's Python sources into one more layer; empty: none
}

// Bake appends an artifact to an image as a layer of its own, before it one with the bytecode of the image's Python sources if the options say so, and pushes the
// result. It needs no container engine. Only these layers, their entries in the configuration and the environment variable differ from the base. It returns the new
// manifest's digest.
func (c *Client) Bake(ctx context.Context, o BakeOptions) (string, error) {
	d, err := c.bake(ctx, o)
	if err != nil {
		return "", fmt.Errorf("bake %s: %w", o.Target, err)
	}
	return d.Digest.String(), nil
}

func (c *Client) bake(ctx context.Context, o BakeOptions) (ocispec.Descriptor, error) {
	none := ocispec.Descriptor{}
	art, err := artifacts.Check(o.Artifact)
	if err != nil {
		return none, err
	}
	base, err := c.repository(o.Base)
	if err != nil {
		return none, err
	}
	target, err := c.repository(o.Target)
	if err != nil {
		return none, err
	}
	if target.Reference.ValidateReferenceAsTag() != nil {
		return none, errors.New("the reference needs a tag")
	}
	image, err := readImage(ctx, base, o.Platform)
	if err != nil {
		return none, fmt.Errorf("read base %s: %w", o.Base, err)
	}
	layer, err := openLayer(o.Artifact, image.layerType())
	if err != nil {
		return none, err
	}
	defer layer.file.Close()
	// The artifact's layer is not compressed, so its digest is also its diff_id.
	added := []addition{{layer.descriptor, layer.descriptor.Digest, layer}}
	if o.Python != "" {
		compiled, remove, err := precompile(ctx, base, image, o.Python)
		defer remove()
		if err != nil {
			return none, fmt.Errorf("compile Python of %s: %w", o.Base, err)
		}
		added = slices.Insert(added, 0, compiled)
	}
	config, manifest, err := image.with(added, art.Identity.Digest(), o.Base)
	if err != nil {
		return none, fmt.Errorf("read base %s: %w", o.Base, err)
	}
	for _, d := range image.layers {
		if err := copyLayer(ctx, base, target, d); err != nil {
			return none, err
		}
	}
	for _, a := range added {
		if err := c.upload(ctx, target, a.descriptor, a.content); err != nil {
			return none, err
		}
	}
	if err := c.upload(ctx, target, describe(image.configType, config), bytes.NewReader(config)); err != nil {
		return none, err
	}
	d := describe(image.mediaType, manifest)
	return d, target.Manifests().PushReference(ctx, d, bytes.NewReader(manifest), target.Reference.Reference)
}

// addition is a layer that an image gets.
type addition struct {
	descriptor ocispec.Descriptor
	diffID     digest.Digest // of the archive without compression
	content    io.ReaderAt
}

// copyLayer copies a layer from the base, inside the registry if possible.
func copyLayer(ctx context.Context, base, target *remote.Repository, d ocispec.Descriptor) error {
	o := oras.CopyGraphOptions{}
	if base.Reference.Registry == target.Reference.Registry {
		o.MountFrom = func(context.Context, ocispec.Descriptor) ([]string, error) {
			return []string{base.Reference.Repository}, nil
		}
	}
	if err := oras.CopyGraph(ctx, base, target, d, o); err != nil {
		return fmt.Errorf("copy layer %s: %w", d.Digest, err)
	}
	return nil
}

// image is the part of a base image that baking has to understand. All other members of both documents stay as they are.
type image struct {
	mediaType, configType string
	digest                digest.Digest
	manifest, config      map[string]json.RawMessage
	layers                []ocispec.Descriptor
}

func readImage(ctx context.Context, repo *remote.Repository, platform string) (*image, error) {
	d, err := repo.Resolve(ctx, repo.Reference.ReferenceOrDefault())
	if err != nil {
		return nil, err
	}
	data, err := fetchAll(ctx, repo.Manifests(), d, maxManifest)
	if err != nil {
		return nil, err
	}
	if d.MediaType == typeIndex || d.MediaType == dockerList {
		index, err := parseIndex(data)
		if err != nil {
			return nil, err
		}
		if d, err = choosePlatform(index, platform); err != nil {
			return nil, err
		}
		if data, err = fetchAll(ctx, repo.Manifests(), d, maxManifest); err != nil {
			return nil, err
		}
	}
	if d.MediaType != typeManifest && d.MediaType != dockerImage {
		return nil, fmt.Errorf("%s is no image", d.MediaType)
	}
	var m ocispec.Manifest
	i := &image{mediaType: d.MediaType, digest: d.Digest}
	if err := errors.Join(json.Unmarshal(data, &m), json.Unmarshal(data, &i.manifest)); err != nil {
		return nil, err
	}
	i.configType, i.layers = m.Config.MediaType, m.Layers
	for _, l := range m.Layers {
		if err := checkDescriptor(l); err != nil {
			return nil, err
		}
	}
	if data, err = fetchAll(ctx, repo.Blobs(), m.Config, maxConfig); err != nil {
		return nil, err
	}
	if err := json.Unmarshal(data, &i.config); err != nil {
		return nil, err
	}
	if i.manifest == nil || i.config == nil {
		return nil, errors.New("its manifest or its configuration is null")
	}
	return i, nil
}

func choosePlatform(index *ocispec.Index, platform string) (ocispec.Descriptor, error) {
	if platform == "" {
		platform = "linux/" + runtime.GOARCH
	}
	var all []string
	for _, d := range index.Manifests {
		if d.Platform == nil {
			continue
		}
		name := d.Platform.OS + "/" + d.Platform.Architecture
		if name == platform || d.Platform.Variant != "" && name+"/"+d.Platform.Variant == platform {
			return d, nil
		}
		all = append(all, name)
	}
	return ocispec.Descriptor{}, fmt.Errorf("the image is not for %s, only for %s (choose with --platform)", platform, strings.Join(all, ", "))
}

func (i *image) layerType() string {
	if i.mediaType == dockerImage {
		return dockerLayer
	}
	return typeLayer
}

// with returns configuration and manifest of the image with more layers.
func (i *image) with(added []addition, identity, baseName string) (config, manifest []byte, err error) {
	if err := i.extendConfig(added, identity); err != nil {
		return nil, nil, err
	}
	if config, err = json.Marshal(i.config); err != nil {
		return nil, nil, err
	}
	notes := map[string]string{}
	if err := member(i.manifest, "annotations", &notes); err != nil {
		return nil, nil, err
	}
	if i.mediaType == typeManifest { // Docker's manifests have no annotations
		notes[annotationBase], notes[annotationBaseSum] = baseName, i.digest.String()
		notes[annotationIdentity] = identity
		if err := setMember(i.manifest, "annotations", notes); err != nil {
			return nil, nil, err
		}
	}
	layers := slices.Clone(i.layers)
	for _, a := range added {
		layers = append(layers, a.descriptor)
	}
	if err := errors.Join(setMember(i.manifest, "config", describe(i.configType, config)), setMember(i.manifest, "layers", layers)); err != nil {
		return nil, nil, err
	}
	manifest, err = json.Marshal(i.manifest)
	return config, manifest, err
}

func (i *image) extendConfig(added []addition, identity string) error {
	run, rootfs := map[string]json.RawMessage{}, map[string]json.RawMessage{}
	var history []json.RawMessage
	var env []string
	labels := map[string]string{}
	var diffIDs []digest.Digest
	if err := errors.Join(member(i.config, "config", &run), member(i.config, "rootfs", &rootfs), member(i.config, "history", &history),
		member(run, "Env", &env), member(run, "Labels", &labels), member(rootfs, "diff_ids", &diffIDs)); err != nil {
		return err
	}
	if len(diffIDs) != len(i.layers) {
		return fmt.Errorf("the image has %d layers and %d diff_ids", len(i.layers), len(diffIDs))
	}
	const name = contract.EnvArtifact + "="
	kept := env[:0]
	for _, v := range env {
		if !strings.HasPrefix(v, name) {
			kept = append(kept, v)
		}
	}
	labels[annotationIdentity] = identity
	for _, a := range added {
		diffIDs, history = append(diffIDs, a.diffID), append(history, json.RawMessage(`{"created_by":"medusa bake"}`))
	}
	return errors.Join(
		setMember(run, "Env", append(kept, name+bakedPath)),
		setMember(run, "Labels", labels),
		setMember(i.config, "config", run),
		setMember(rootfs, "diff_ids", diffIDs),
		setMember(i.config, "rootfs", rootfs),
		setMember(i.config, "history", history))
}

// member reads one member of a JSON object. If it is missing or null, out keeps its value.
func member[T any](object map[string]json.RawMessage, name string, out *T) error {
	raw, there := object[name]
	if !there || string(raw) == "null" {
		return nil
	}
	if err := json.Unmarshal(raw, out); err != nil {
		return fmt.Errorf("%s: %w", name, err)
	}
	return nil
}

func setMember(object map[string]json.RawMessage, name string, value any) error {
	raw, err := json.Marshal(value)
	object[name] = raw
	return err
}
