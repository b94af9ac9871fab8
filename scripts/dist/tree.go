package main

import (
	"archive/tar"
	"bytes"
	"cmp"
	"compress/gzip"
	"debug/elf"
	"fmt"
	"io/fs"
	"os"
	"path"
	"path/filepath"
	"slices"
	"strings"
	"time"
)

// file is a file to pack. Its name is its path in the tree.
type file struct {
	name string
	data []byte
	mode int64
}

// installed lists the binaries that a platform's tree must have.
var installed = []string{"lib/libmedusa.so", "lib/libmedusa_interpose.so", "medusa", "medusa-probe"}

// plugins is the folder of the plug-ins for engines in Python. medusa looks for them there: beside the interposer.
const plugins = "lib/python"

// tree reads the contents of a platform's archive: binaries, plug-ins, and the licenses of this project and of all linked code.
func tree(dir, licenses, license string) ([]file, error) {
	var out []file
	for _, name := range installed {
		data, err := os.ReadFile(filepath.Join(dir, name))
		if err != nil {
			return nil, fmt.Errorf("read tree: %w", err)
		}
		out = append(out, file{name, data, 0o755})
	}
	scripts, err := filesBelow(os.DirFS(dir), plugins)
	if err != nil {
		return nil, fmt.Errorf("read tree: %w", err)
	}
	texts, err := filesBelow(os.DirFS(licenses), ".")
	if err != nil {
		return nil, fmt.Errorf("read licenses: %w", err)
	}
	for i := range texts {
		texts[i].name = "licenses/" + texts[i].name
	}
	out = slices.Concat(out, scripts, texts)
	data, err := os.ReadFile(license)
	if err != nil {
		return nil, fmt.Errorf("read license: %w", err)
	}
	out = append(out, file{"LICENSE", data, 0o644})
	slices.SortFunc(out, func(a, b file) int { return cmp.Compare(a.name, b.name) })
	return out, nil
}

func filesBelow(tree fs.FS, folder string) (out []file, err error) {
	err = fs.WalkDir(tree, folder, func(path string, entry fs.DirEntry, err error) error {
		if err != nil || entry.IsDir() {
			return err
		}
		data, err := fs.ReadFile(tree, path)
		out = append(out, file{path, data, 0o644})
		return err
	})
	if err == nil && len(out) == 0 {
		err = fmt.Errorf("%s is empty", folder)
	}
	return out, err
}

// examine checks that all binaries are for the architecture, and that medusa needs no dynamic linker, because it runs in images
// without one. It returns the newest glibc version that the shared objects need.
func examine(files []file, arch string) (glibc string, err error) {
	machine := map[string]elf.Machine{"amd64": elf.EM_X86_64, "arm64": elf.EM_AARCH64}[arch]
	for _, f := range files {
		if f.mode != 0o755 {
			continue
		}
		e, err := elf.NewFile(bytes.NewReader(f.data))
		if err != nil {
			return "", fmt.Errorf("examine %s: %w", f.name, err)
		}
		if e.Machine != machine {
			return "", fmt.Errorf("examine %s: the binary is for %s, not for %s", f.name, e.Machine, arch)
		}
		if f.name == "medusa" && e.Section(".interp") != nil {
			return "", fmt.Errorf("examine %s: the binary is linked dynamically", f.name)
		}
		if !strings.HasSuffix(f.name, ".so") {
			continue
		}
		symbols, err := e.ImportedSymbols()
		if err != nil {
			return "", fmt.Errorf("examine %s: %w", f.name, err)
		}
		for _, s := range symbols {
			if v, ok := strings.CutPrefix(s.Version, "GLIBC_"); ok && (glibc == "" || later(v, glibc)) {
				glibc = v
			}
		}
	}
	return glibc, nil
}

// later compares versions of the form 2.34.
func later(a, b string) bool {
	var x, y [3]int
	// A missing part counts as 0.
	_, _ = fmt.Sscanf(a, "%d.%d.%d", &x[0], &x[1], &x[2])
	_, _ = fmt.Sscanf(b, "%d.%d.%d", &y[0], &y[1], &y[2])
	return slices.Compare(x[:], y[:]) > 0
}

// pack makes a tar.gz without any trace of the time and place of the build.
func pack(files []file, prefix string) ([]byte, error) {
	plain, err := archive(files, prefix)
	if err != nil {
		return nil, err
	}
	return compress(plain)
}

func archive(files []file, prefix string) ([]byte, error) {
	var out bytes.Buffer
	w := tar.NewWriter(&out)
	made := map[string]bool{".": true}
	var directory func(string) error
	directory = func(dir string) error {
		if made[dir] {
			return nil
		}
		made[dir] = true
		if err := directory(path.Dir(dir)); err != nil {
			return err
		}
		return w.WriteHeader(&tar.Header{Typeflag: tar.TypeDir, Name: dir + "/", Mode: 0o755, ModTime: time.Unix(0, 0)})
	}
	for _, f := range files {
		name := prefix + f.name
		if err := directory(path.Dir(name)); err != nil {
			return nil, err
		}
		if err := w.WriteHeader(&tar.Header{Name: name, Mode: f.mode, Size: int64(len(f.data)), ModTime: time.Unix(0, 0)}); err != nil {
			return nil, err
		}
		if _, err := w.Write(f.data); err != nil {
			return nil, err
		}
	}
	if err := w.Close(); err != nil {
		return nil, err
	}
	return out.Bytes(), nil
}

func compress(data []byte) ([]byte, error) {
	var out bytes.Buffer
	w, err := gzip.NewWriterLevel(&out, gzip.BestCompression)
	if err != nil {
		return nil, err
	}
	if _, err := w.Write(data); err != nil {
		return nil, err
	}
	if err := w.Close(); err != nil {
		return nil, err
	}
	return out.Bytes(), nil
}
