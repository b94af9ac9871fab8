package supervisor

import (
	"encoding/hex"
	"errors"
	"fmt"
	"io"
	"os"
	"path/filepath"
	"syscall"

	"medusa/artifacts"
	"medusa/artifacts/layer"
	"medusa/artifacts/store"
)

// placeDirs puts the artifact's directories in place and says what it did. What JIT compilers made goes into the cache of
// artifacts unless the user names a place; env tells the engine where it is, and release lets it be evicted. An artifact
// that cannot be read is for the engine's process to report.
func placeDirs(path string, places map[string]string, w io.Writer) (env []string, release func(), err error) {
	var pins []*store.Pin
	release = func() {
		for _, pin := range pins {
			_ = pin.Close()
		}
	}
	f, err := artifacts.Open(path)
	if errors.Is(err, artifacts.ErrCorrupt) || errors.Is(err, artifacts.ErrVersion) || errors.Is(err, os.ErrNotExist) {
		return nil, release, nil
	}
	if err != nil {
		return nil, release, err
	}
	defer f.Close()
	m, err := f.Manifest()
	if err != nil {
		return nil, release, err
	}
	placed, err := layer.Place(f, places)
	for _, p := range placed {
		if p.Different > 0 {
			fmt.Fprintf(w, "medusa: directory %s: %d files at %s differ from the artifact's and stay\n", p.Name, p.Different, p.Path)
		}
	}
	if err != nil {
		return nil, release, err
	}
	for i := range m.Layers {
		l := &m.Layers[i]
		variable, place := layer.Variable(l.Name), places[l.Name]
		if variable == "" {
			continue
		}
		chosen := os.Getenv(variable)
		if chosen != "" && place == "" {
			fmt.Fprintf(w, "medusa: directory %s: %s is set, so the artifact's is not used (unset it, or add --dir %s=%s)\n", l.Name, variable, l.Name, chosen)
			continue
		}
		linked := layer.Linked(l)
		if linked && place == "" {
			pin, err := unpack(f, l)
			if err != nil {
				return env, release, err
			}
			pins = append(pins, pin)
			place = filepath.Join(pin.Path, l.Name)
		}
		if linked {
			if err := link(l.Path, place); err != nil {
				return env, release, fmt.Errorf("place directory %s: %w", l.Name, err)
			}
		}
		if linked || place == "" {
			place = l.Path
		}
		if chosen == "" {
			env = append(env, variable+"="+place)
		}
	}
	return env, release, nil
}

// unpack puts a layer into the cache of artifacts, where all starts from this artifact find it.
func unpack(f *artifacts.File, l *artifacts.Layer) (*store.Pin, error) {
	cache, err := store.FromEnv()
	if err != nil {
		return nil, err
	}
	return cache.Unpack("sha256:"+hex.EncodeToString(l.SHA256[:]), func(dir string) error {
		_, err := layer.PlaceAt(f, l, filepath.Join(dir, l.Name))
		return err
	})
}

// link makes a path of recorded caches lead to a folder. The directory that holds it lies where anybody may write, so it has
// to be this user's own.
func link(path, to string) error {
	dir := filepath.Dir(path)
	if err := os.Mkdir(dir, 0o700); err != nil && !errors.Is(err, os.ErrExist) {
		return err
	}
	info, err := os.Lstat(dir)
	if err != nil {
		return err
	}
	if st, ok := info.Sys().(*syscall.Stat_t); !ok || !info.IsDir() || int(st.Uid) != os.Getuid() || info.Mode().Perm()&0o022 != 0 {
		return fmt.Errorf("link caches: %s is not a directory of this user's alone", dir)
	}
	part := fmt.Sprintf("%s.%d", path, os.Getpid())
	if err := os.Symlink(to, part); err != nil {
		return err
	}
	if err := os.Rename(part, path); err != nil {
		return errors.Join(err, os.Remove(part))
	}
	return nil
}
