package compile_test

import (
	"path/filepath"
	"testing"
	"time"

	"medusa/artifacts"
	"medusa/graphir"
	"medusa/internal/measure"
	"medusa/test/bench"
)

// BenchmarkGraphPart takes the paper's models of 12 to 16 thousand nodes, and reports the worst of them.
func BenchmarkGraphPart(b *testing.B) {
	var size, took float64
	for _, w := range bench.Paper() {
		if w.Nodes < 12_000 || w.Nodes > 16_500 {
			continue
		}
		dir := b.TempDir()
		writeTraces(b, dir, w)
		spec, err := compilePair(filepath.Join(dir, w.Name+".A"), filepath.Join(dir, w.Name+".B"))
		if err != nil {
			b.Fatal(err)
		}
		bytes, decode := graphPart(b, writeArtifact(b, spec))
		size, took = max(size, float64(bytes)), max(took, float64(decode.Median()))
	}
	for b.Loop() {
	}
	b.ReportMetric(size/1e6, "graph-MB")
	b.ReportMetric(took/1e6, "graph-decode-ms")
}

func writeArtifact(b *testing.B, spec *graphir.Spec) string {
	b.Helper()
	path := filepath.Join(b.TempDir(), "graphs.medusa")
	if err := artifacts.Write(path, &artifacts.Artifact{Spec: spec, KV: bench.Profile()}); err != nil {
		b.Fatal(err)
	}
	return path
}

// graphPart measures how large the graphs are before compression, and the processor time of reading the whole file: sections
// decompressed, decoded and checked.
func graphPart(b *testing.B, path string) (size uint64, decode measure.Times) {
	b.Helper()
	f, err := artifacts.Open(path)
	if err != nil {
		b.Fatal(err)
	}
	defer f.Close()
	for _, s := range f.Sections() {
		if s.Kind == "graph" {
			size = s.Size
		}
	}
	times := bench.Alternate(9, func() time.Duration {
		return bench.Processor(func() {
			if _, err := artifacts.Read(path); err != nil {
				b.Fatal(err)
			}
		})
	})
	return size, times[0]
}
