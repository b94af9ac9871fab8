package page

import (
	_ "embed"
	"fmt"
	"html/template"
	"io"
	"path/filepath"
	"slices"
	"strconv"
	"strings"

	"medusa/artifacts"
	"medusa/inspect"
	"medusa/kvprofile"
)

//go:embed page.html.tmpl
var source string

var tmpl = template.Must(template.New("page").Funcs(template.FuncMap{
	"bytes": inspect.Bytes,
	"pct":   func(v float64) string { return fmt.Sprintf("%.2f%%", 100*v) },
	"sec":   seconds,
	"num":   func(v float64) string { return strings.TrimSuffix(fmt.Sprintf("%.1f", v), ".0") },
}).Parse(source))

// view has the values for the template.
type view struct {
	Title       string
	Simulated   bool
	Facts       []fact
	Tiles       []tile
	Timeline    timeline
	Memory      memory
	KV          []kvprofile.Share
	Kernels     kernels
	Graphs      graphs
	Sizes       *inspect.Sizes
	Directories []artifacts.Directory
	Verified    artifacts.Verification
	Identity    artifacts.Identity
	Digest      string
}

type fact struct{ Name, Value string }

type tile struct{ Value, Name, Note string }

// Write writes the page of an artifact that was read from a file with this name.
func Write(w io.Writer, file string, art *artifacts.Artifact, sections []artifacts.Section) error {
	kernels, err := inspect.ListKernels(art.Spec)
	if err != nil {
		return err
	}
	allocations, err := inspect.ListAllocations(art.Spec)
	if err != nil {
		return err
	}
	sizes, err := inspect.Measure(sections, art.Spec)
	if err != nil {
		return err
	}
	summary, err := inspect.Summarize("", art)
	if err != nil {
		return err
	}
	v := &view{
		Title: filepath.Base(file), Simulated: simulated(art), Timeline: newTimeline(art.Stages), Memory: newMemory(art, allocations),
		KV:      art.KV.Shares(min(art.Verification.NativeFree, art.Verification.RestoredFree)),
		Kernels: newKernels(kernels), Graphs: newGraphs(slices.Clone(sizes.Graphs)), Sizes: sizes, Directories: art.Directories,
		Verified: art.Verification, Identity: art.Identity, Digest: art.Identity.Digest(),
	}
	v.facts(art)
	v.tiles(summary)
	if err := tmpl.Execute(w, v); err != nil {
		return fmt.Errorf("write page: %w", err)
	}
	return nil
}

// simulated reports whether the times come from the simulated GPU. The page then says so in large letters, because no real GPU
// has them.
func simulated(art *artifacts.Artifact) bool {
	name, _ := art.Identity.Get(artifacts.KeyGPUName)
	return strings.Contains(strings.ToLower(name+art.Verification.Device), "simulated")
}

func (v *view) facts(art *artifacts.Artifact) {
	add := func(name string, keys ...string) {
		var values []string
		for _, key := range keys {
			if value, ok := art.Identity.Get(key); ok {
				values = append(values, value)
			}
		}
		if len(values) > 0 {
			v.Facts = append(v.Facts, fact{name, strings.Join(values, " ")})
		}
	}
	add("GPU", artifacts.KeyGPUName)
	add("driver", artifacts.KeyDriverVersion)
	add("engine", artifacts.KeyEngineName, artifacts.KeyEngineVersion)
	add("framework", artifacts.KeyFramework)
	if !art.Created.IsZero() {
		v.Facts = append(v.Facts, fact{"made", art.Created.Format("2006-01-02 15:04 MST")})
	}
}

func (v *view) tiles(s *inspect.Summary) {
	native, restored := v.Timeline.total("native"), v.Timeline.total("restored")
	switch {
	case native > 0 && restored > 0:
		v.Tiles = append(v.Tiles, tile{seconds(restored), "restored start", fmt.Sprintf("natively %s: %.1f times as long", seconds(native), native/restored)})
	case native > 0:
		v.Tiles = append(v.Tiles, tile{seconds(native), "native start", "no restored start was measured"})
	}
	v.Tiles = append(v.Tiles,
		tile{fmt.Sprint(s.Graphs), "graphs", fmt.Sprintf("%d nodes, %d pointers", s.Nodes, s.Pointers)},
		tile{fmt.Sprint(s.Kernels), "kernels", fmt.Sprintf("in %d modules, %d triggering layers", s.Modules, len(s.Triggers))},
		tile{inspect.Bytes(s.KVBytes), "KV cache", cacheNote(s)},
		tile{inspect.Bytes(v.Sizes.File), "artifact", fmt.Sprintf("%s of saved buffers before compression", inspect.Bytes(uint64(s.ContentBytes)))},
	)
}

func cacheNote(s *inspect.Summary) string {
	if e := s.Elastic; e != nil {
		return fmt.Sprintf("at the most, elastic from %s on: %d to %d blocks", inspect.Bytes(e.Least), e.LeastBlocks, e.Blocks)
	}
	return "without a profile forward"
}

func seconds(s float64) string {
	switch {
	case s == 0:
		return "0 s"
	case s < 0.999:
		return strconv.FormatFloat(1000*s, 'g', 3, 64) + " ms"
	case s < 1000:
		return strconv.FormatFloat(s, 'g', 3, 64) + " s"
	}
	return fmt.Sprintf("%.0f s", s)
}
