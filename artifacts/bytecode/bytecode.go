package bytecode

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"io"
	"os"
	"os/exec"
	"runtime"
	"slices"
	"strings"

	"golang.org/x/sync/errgroup"

	"medusa/internal/scratch"
)

// Maker makes the layer of one image.
type Maker struct {
	python  string
	version string
	folder  *scratch.Folder
	tree    tree
}

// New asks the interpreter for its version. The image's sources are unpacked in a folder below the folder for temporary files, which Close removes.
func New(ctx context.Context, python string) (*Maker, error) {
	out, err := run(ctx, python, "-c", "import sys; print('%d.%d' % sys.version_info[:2], sys.implementation.name)")
	if err != nil {
		return nil, err
	}
	version, implementation, _ := strings.Cut(strings.TrimSpace(out), " ")
	if implementation != "cpython" {
		return nil, fmt.Errorf("%s is not CPython", python)
	}
	folder, err := scratch.ForRun()
	if err != nil {
		return nil, err
	}
	root, err := os.OpenRoot(folder.Path)
	if err != nil {
		return nil, errors.Join(err, folder.Close())
	}
	return &Maker{python: python, version: version, folder: folder, tree: tree{root: root}}, nil
}

// Close removes the unpacked files.
func (m *Maker) Close() error { return errors.Join(m.tree.root.Close(), m.folder.Close()) }

// Add unpacks a layer, an archive without compression, over those before it.
func (m *Maker) Add(layer io.Reader) error { return m.tree.add(layer) }

// Make compiles, and writes the layer without compression.
func (m *Maker) Make(ctx context.Context, out io.Writer) (Counts, error) {
	sources, err := m.tree.sources(m.version)
	if err != nil {
		return Counts{}, err
	}
	if err := m.compile(ctx, sources); err != nil {
		return Counts{}, err
	}
	n, err := m.tree.pack(sources, m.version, out)
	return Counts{len(sources), n}, err
}

// program compiles each source, and puts the bytecode in place unless the image has the same. The image's is compared as bytes: an interpreter
// that unmarshals hostile ones runs them. A source that does not compile is left out.
const program = `
import importlib.util, os, py_compile, sys

def of_source(data, name):
    "Whether an interpreter takes the bytecode for that of the source."
    flags = int.from_bytes(data[4:8], "little")
    if flags == 0:
        stat = os.stat(name)
        return data[8:16] == b"".join((n & 0xffffffff).to_bytes(4, "little") for n in (int(stat.st_mtime), stat.st_size))
    with open(name, "rb") as source:
        return flags in (1, 3) and data[8:16] == importlib.util.source_hash(source.read())

def read(name):
    if os.path.exists(name):
        with open(name, "rb") as file:
            return file.read()
    return b""

for name in sys.stdin.read().split("\0"):
    at = importlib.util.cache_from_source(name, optimization="")
    new = at + ".new"
    if not py_compile.compile(name, new, "/" + name, quiet=2, invalidation_mode=py_compile.PycInvalidationMode.CHECKED_HASH):
        continue
    made, had = read(new), read(at)
    if had[:4] == made[:4] and had[16:] == made[16:] and of_source(had, name):
        os.remove(new)
    else:
        os.replace(new, at)
`

// compile has an interpreter for each processor.
func (m *Maker) compile(ctx context.Context, sources []string) error {
	var all errgroup.Group
	for some := range slices.Chunk(sources, len(sources)/runtime.GOMAXPROCS(0)+1) {
		all.Go(func() error {
			cmd := command(ctx, m.python, "-c", program)
			cmd.Dir, cmd.Stdin = m.folder.Path, strings.NewReader(strings.Join(some, "\x00"))
			if out, err := cmd.CombinedOutput(); err != nil {
				return fmt.Errorf("compile with %s: %w: %s", m.python, err, bytes.TrimSpace(out))
			}
			return nil
		})
	}
	return all.Wait()
}

func run(ctx context.Context, python string, args ...string) (string, error) {
	out, err := command(ctx, python, args...).Output()
	if err != nil {
		return "", fmt.Errorf("run %s: %w", python, err)
	}
	return string(out), nil
}

// command runs the interpreter without the user's own modules and variables.
func command(ctx context.Context, python string, args ...string) *exec.Cmd {
	return exec.CommandContext(ctx, python, append([]string{"-I", "-S"}, args...)...)
}
