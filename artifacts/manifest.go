package artifacts

import (
	"crypto/sha256"
	"errors"
	"fmt"
	"math"
	"path/filepath"
	"regexp"
	"strings"
	"time"
	"unicode/utf8"

	"google.golang.org/protobuf/proto"

	"medusa/artifacts/artifactpb"
	"medusa/graphir"
	"medusa/kvprofile"
)

// validate checks the rules that the encoding cannot express. Writers and readers call it.
func (m *Manifest) validate() error {
	if err := m.Identity.Validate(); err != nil {
		return err
	}
	if err := m.KV.Validate(); err != nil {
		return err
	}
	for i, t := range m.Stages {
		for _, s := range t.Stages {
			if math.IsNaN(s.Seconds) || math.IsInf(s.Seconds, 0) || s.Seconds < 0 {
				return fmt.Errorf("check stage times: %s of entry %d took %v seconds", s.Name, i, s.Seconds)
			}
		}
	}
	if err := checkDirectories(m.Directories); err != nil {
		return err
	}
	for _, text := range m.texts() {
		if !utf8.ValidString(text) {
			return fmt.Errorf("check manifest: %q is not UTF-8", text)
		}
	}
	return nil
}

var layerName = regexp.MustCompile(`^[a-z0-9][a-z0-9._-]{0,63}$`)

// CheckDirectoryName checks the name of a bundled directory: lower-case letters, digits, '.', '_' and '-', at most 64.
func CheckDirectoryName(name string) error {
	if !layerName.MatchString(name) {
		return fmt.Errorf("check bundled directory: name %q: want lower-case letters, digits, '.', '_' and '-', at most 64", name)
	}
	return nil
}

// checkDirectories is strict because names appear in command lines and annotations, and paths are used on a worker's disk.
func checkDirectories(layers []Directory) error {
	seen := map[string]bool{}
	for _, l := range layers {
		if err := CheckDirectoryName(l.Name); err != nil {
			return err
		}
		switch {
		case seen[l.Name]:
			return fmt.Errorf("check bundled directories: there are two named %s", l.Name)
		case !filepath.IsAbs(l.Path) || filepath.Clean(l.Path) != l.Path || strings.ContainsRune(l.Path, 0):
			return fmt.Errorf("check bundled directory: path %q of %s is not absolute and clean", l.Path, l.Name)
		}
		seen[l.Name] = true
	}
	return nil
}

func (m *Manifest) texts() []string {
	v := &m.Verification
	out := []string{v.Device, v.Driver, v.Date, v.SelfTest, v.Unchanged, v.Results, v.Weights, v.Tied}
	for _, g := range v.Graphs {
		out = append(out, g.Label, g.Digest, g.Canary)
	}
	for _, l := range m.Directories {
		out = append(out, l.Path)
	}
	for _, t := range m.Stages {
		out = append(out, t.Mode, t.Device, t.Driver, t.Date)
		for _, s := range t.Stages {
			out = append(out, s.Name)
		}
	}
	return out
}

func (m *Manifest) encode() ([]byte, error) {
	if err := m.validate(); err != nil {
		return nil, err
	}
	kv, v := &m.KV, &m.Verification
	pb := &artifactpb.Manifest{
		KvProfile: &artifactpb.KVProfile{KvBytes: kv.KVBytes, TotalMemory: kv.TotalMemory, FreeBefore: kv.FreeBefore,
			FreeAfter: kv.FreeAfter, PeakForward: kv.PeakForward, Utilization: kv.Utilization, ProfileTokens: kv.ProfileTokens,
			Workspace: kv.Workspace, Least: kv.Least, Block: kv.Block, Reserve: kv.Reserve},
		Verification: &artifactpb.Verification{Device: v.Device, Driver: v.Driver, Date: v.Date, SelfTest: v.SelfTest,
			Tokens: v.Tokens, Unchanged: v.Unchanged, UnchangedChunks: v.UnchangedChunks, NativeFree: v.NativeFree,
			RestoredFree: v.RestoredFree, Results: v.Results, Alone: v.Alone, Weights: v.Weights, Tied: v.Tied},
	}
	pb.RegionBase, pb.RegionSize = m.Region.Base, m.Region.Size
	if !m.Created.IsZero() {
		pb.Created = m.Created.Unix()
	}
	for _, f := range m.Identity {
		pb.Identity = append(pb.Identity, &artifactpb.Factor{Key: f.Key, Value: f.Value})
	}
	for _, t := range m.Stages {
		times := &artifactpb.StageTimes{Mode: t.Mode, Device: t.Device, Driver: t.Driver, Date: t.Date}
		for _, s := range t.Stages {
			times.Stages = append(times.Stages, &artifactpb.Stage{Name: s.Name, Seconds: s.Seconds})
		}
		pb.StageTimes = append(pb.StageTimes, times)
	}
	for _, g := range v.Graphs {
		pb.Verification.Graphs = append(pb.Verification.Graphs, &artifactpb.GraphCheck{Label: g.Label,
			BytesCompared: g.BytesCompared, NativeDeterministic: g.NativeDeterministic, Digest: g.Digest, Canary: g.Canary})
	}
	for i := range m.Directories {
		l := &m.Directories[i]
		pb.Layers = append(pb.Layers, &artifactpb.Layer{Name: l.Name, Path: l.Path, Sha256: l.SHA256[:], PackedSize: l.PackedSize,
			Size: l.Size, Files: l.Files})
	}
	return proto.MarshalOptions{Deterministic: true}.Marshal(pb)
}

func decodeManifest(data []byte) (*Manifest, error) {
	pb := &artifactpb.Manifest{}
	if err := proto.Unmarshal(data, pb); err != nil {
		return nil, err
	}
	kv, v := pb.KvProfile, pb.Verification
	if kv == nil || v == nil {
		return nil, errors.New("KV profile or verification record is missing")
	}
	m := &Manifest{
		KV: kvprofile.Profile{KVBytes: kv.KvBytes, TotalMemory: kv.TotalMemory, FreeBefore: kv.FreeBefore,
			FreeAfter: kv.FreeAfter, PeakForward: kv.PeakForward, Utilization: kv.Utilization, ProfileTokens: kv.ProfileTokens,
			Workspace: kv.Workspace, Least: kv.Least, Block: kv.Block, Reserve: kv.Reserve},
		Verification: Verification{Device: v.Device, Driver: v.Driver, Date: v.Date, SelfTest: v.SelfTest, Tokens: v.Tokens,
			Unchanged: v.Unchanged, UnchangedChunks: v.UnchangedChunks, NativeFree: v.NativeFree, RestoredFree: v.RestoredFree,
			Results: v.Results, Alone: v.Alone, Weights: v.Weights, Tied: v.Tied},
	}
	m.Region = graphir.Region{Base: pb.RegionBase, Size: pb.RegionSize}
	if pb.Created != 0 {
		m.Created = time.Unix(pb.Created, 0).UTC()
	}
	for _, f := range pb.Identity {
		m.Identity = append(m.Identity, Factor{f.Key, f.Value})
	}
	for _, t := range pb.StageTimes {
		times := StageTimes{Mode: t.Mode, Device: t.Device, Driver: t.Driver, Date: t.Date}
		for _, s := range t.Stages {
			times.Stages = append(times.Stages, Stage{s.Name, s.Seconds})
		}
		m.Stages = append(m.Stages, times)
	}
	for _, g := range v.Graphs {
		m.Verification.Graphs = append(m.Verification.Graphs, GraphCheck{g.Label, g.BytesCompared, g.NativeDeterministic, g.Digest, g.Canary})
	}
	for _, l := range pb.Layers {
		if len(l.Sha256) != sha256.Size {
			return nil, fmt.Errorf("bundled directory %s has a digest of %d bytes", l.Name, len(l.Sha256))
		}
		m.Directories = append(m.Directories, Directory{Name: l.Name, Path: l.Path, SHA256: [32]byte(l.Sha256), PackedSize: l.PackedSize,
			Size: l.Size, Files: l.Files})
	}
	return m, m.validate()
}
