package inspect

import (
	"io"
	"maps"
	"slices"
	"strconv"

	"medusa/artifacts"
	"medusa/graphir"
	"medusa/internal/printable"
)

// Summary is an artifact's overview.
type Summary struct {
	File         string                 `json:"file"`
	Created      string                 `json:"created"`
	Identity     map[string]string      `json:"identity"`
	Ranks        int                    `json:"ranks,omitempty"` // number of worker processes; if several, the rest is about one of them
	KVBytes      uint64                 `json:"kv_bytes"`
	Elastic      *Elastic               `json:"kv_elastic,omitempty"` // nil: the KV cache has one size
	Graphs       int                    `json:"graphs"`
	Nodes        int                    `json:"nodes"`
	Pointers     int                    `json:"pointers"`
	Kernels      int                    `json:"kernels"`
	Modules      int                    `json:"modules"`
	Allocations  int                    `json:"allocations"`
	Contents     int                    `json:"permanent_buffers"`
	ContentBytes int                    `json:"permanent_bytes"`
	Region       uint64                 `json:"region,omitempty"` // base of the recorded addresses; 0: none
	Placed       int                    `json:"placed,omitempty"` // allocations with a recorded address
	Images       int                    `json:"images,omitempty"` // embedded
	Triggers     []graphir.Trigger      `json:"triggers"`
	Stages       []artifacts.StageTimes `json:"stages"`
	Verification artifacts.Verification `json:"verification"`
	Digest       string                 `json:"identity_digest"`
	Directories  []Directory            `json:"layers"`
	Notes        map[string]int         `json:"notes,omitempty"` // the engine's notes: bytes by name

	factors artifacts.Identity // in the artifact's order, for the table
}

// Elastic is the part of a KV cache that a start may map. The addresses of kv_bytes are reserved.
type Elastic struct {
	Least       uint64 `json:"least_bytes"` // each start maps these
	LeastBlocks uint64 `json:"least_blocks"`
	Blocks      uint64 `json:"blocks"` // if all of it is mapped
}

// Directory is a bundled directory. Sizes are in bytes.
type Directory struct {
	Name   string `json:"name"`
	Path   string `json:"path"`
	Files  uint64 `json:"files"`
	Size   uint64 `json:"size"`
	Packed uint64 `json:"packed"`
}

// Summarize gives the overview of an artifact that was read from a file with this name.
func Summarize(file string, art *artifacts.Artifact) (*Summary, error) {
	s := &Summary{
		File: file, Created: art.Created.Format("2006-01-02T15:04:05Z07:00"), Identity: map[string]string{},
		KVBytes: art.KV.KVBytes, Graphs: len(art.Spec.Graphs), Kernels: len(art.Spec.Kernels), Modules: len(art.Spec.Modules),
		Allocations: len(art.Spec.Allocations), Contents: len(art.Spec.Contents), Triggers: art.Spec.Triggers,
		Stages: art.Stages, Verification: art.Verification, Digest: art.Identity.Digest(), Directories: []Directory{}, factors: art.Identity,
	}
	if art.KV.Elastic() {
		s.Elastic = &Elastic{art.KV.Least, art.KV.Blocks(art.KV.Least), art.KV.Blocks(art.KV.KVBytes)}
	}
	for _, f := range art.Identity {
		s.Identity[f.Key] = f.Value
	}
	if count, ok := art.Identity.Get(artifacts.KeyRankCount); ok {
		s.Ranks, _ = strconv.Atoi(count)
	}
	err := art.Spec.EachGraph(func(_ int, g *graphir.Graph) error {
		size := sizeOf(art.Spec, g)
		s.Nodes += size.Nodes
		s.Pointers += size.Pointers
		return nil
	})
	for _, c := range art.Spec.Contents {
		s.ContentBytes += len(c.Data)
	}
	s.Region, s.Images = art.Spec.Region.Base, len(art.Spec.Images)
	for _, a := range art.Spec.Allocations {
		if a.Address != 0 {
			s.Placed++
		}
	}
	for _, n := range art.Spec.Notes {
		if s.Notes == nil {
			s.Notes = map[string]int{}
		}
		s.Notes[n.Name] = len(n.Value)
	}
	for _, l := range art.Directories {
		s.Directories = append(s.Directories, Directory{l.Name, l.Path, l.Files, l.Size, l.PackedSize})
	}
	return s, err
}

// WriteTable writes the overview as a table.
func (s *Summary) WriteTable(w io.Writer) error {
	t := printable.NewTable(w)
	t.Row("artifact\t%s", s.File)
	for _, f := range s.factors {
		t.Row("  %s\t%s", f.Key, f.Value)
	}
	t.Row("identity\t%s", s.Digest)
	if s.Ranks > 1 {
		t.Row("ranks\t%d, of which this is %s", s.Ranks, s.Identity[artifacts.KeyRankIndex])
	}
	t.Row("graphs\t%d with %d nodes, %d pointers", s.Graphs, s.Nodes, s.Pointers)
	t.Row("kernels\t%d in %d modules", s.Kernels, s.Modules)
	t.Row("allocations\t%d, of which %d saved ranges hold %s", s.Allocations, s.Contents, Bytes(uint64(s.ContentBytes)))
	if s.Region != 0 {
		t.Row("addresses\t%d allocations, region at %#x", s.Placed, s.Region)
	}
	if s.Images > 0 {
		t.Row("images\t%d embedded", s.Images)
	}
	if e := s.Elastic; e != nil {
		t.Row("KV cache\telastic: %s to %s (%d to %d bytes), %d to %d blocks", Bytes(e.Least), Bytes(s.KVBytes), e.Least, s.KVBytes, e.LeastBlocks, e.Blocks)
	} else {
		t.Row("KV cache\t%s (%d bytes)", Bytes(s.KVBytes), s.KVBytes)
	}
	for _, l := range s.Directories {
		t.Row("directory %s\t%d entries, %s, goes to %s", l.Name, l.Files, Bytes(l.Size), l.Path)
	}
	for _, name := range slices.Sorted(maps.Keys(s.Notes)) {
		t.Row("note %s\t%s", name, Bytes(uint64(s.Notes[name])))
	}
	for _, tr := range s.Triggers {
		t.Row("trigger\tfirst layer at batch %d (%d launches)", tr.Batch, tr.Launches)
	}
	for _, st := range s.Stages {
		t.Row("stages, %s\ton %s, %s", st.Mode, st.Device, st.Date)
		for _, x := range st.Stages {
			t.Row("  %s\t%.3f s", x.Name, x.Seconds)
		}
	}
	if v := s.Verification; v.NativeFree != 0 {
		t.Row("device memory\t%s free after a native start, %s after a restored one", Bytes(v.NativeFree), Bytes(v.RestoredFree))
	}
	if s.Verification.Tied != "" {
		t.Row("tied to its weights\t%s", s.Verification.Tied)
	}
	if s.Verification.Results != "" {
		t.Row("results, sensitivity\t%s", s.Verification.Results)
	}
	if v := s.Verification; v.Device == "" {
		t.Row("verified\tno (medusa verify FILE -- ENGINE compares it with a native start)")
	} else {
		t.Row("verified\t%d graphs on %s, driver %s", len(v.Graphs), v.Device, v.Driver)
	}
	if s.Verification.Alone {
		t.Row("made alone\tno other rank was running: graphs with collective calls have no results that a start could compare")
	}
	return t.Flush()
}
