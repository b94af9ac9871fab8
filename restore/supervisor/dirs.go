package supervisor

import (
	"encoding/hex"
	"errors"
	"fmt"
	"io"
	"os"
	"path/filepath"
	"slices"

	"medusa/artifacts"
	"medusa/artifacts/bundled"
	"medusa/artifacts/store"
	"medusa/internal/printable"
	"medusa/internal/private"
	"medusa/internal/scratch"
)

// placement puts an artifact's directories at places known to the engine: at a place that the user names, or
// in the cache of artifacts. It never writes to a path that the artifact names, except for the link to a cache
// that a recording run had there.
type placement struct {
	file   *artifacts.File
	places map[string]string // the user's, by name
	fits   func() error      // whether the artifact is for a device of this machine
	log    io.Writer
	env    []string    // tells the engine the places of its caches
	held   []io.Closer // a running engine needs these
}

// placeDirs places all directories. It reports the places, and the directories that stay packed. If an artifact cannot be
// read, the engine's process reports that.
func placeDirs(path string, places map[string]string, fits func(artifacts.Identity) error, w io.Writer) (env []string, release func(), err error) {
	p := placement{places: places, log: w}
	release = func() {
		for _, h := range p.held {
			_ = h.Close()
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
	for name := range places {
		if !slices.ContainsFunc(m.Directories, func(l artifacts.Directory) bool { return l.Name == name }) {
			return nil, release, fmt.Errorf("place directory %s: the artifact has none of this name", name)
		}
	}
	p.file, p.fits = f, func() error { return fits(m.Identity) }
	for i := range m.Directories {
		if err := p.place(&m.Directories[i]); err != nil {
			return p.env, release, err
		}
	}
	return p.env, release, nil
}

func (p *placement) place(l *artifacts.Directory) error {
	variable, place, linked := bundled.Variable(l.Name), p.places[l.Name], bundled.Linked(l)
	chosen := ""
	if variable != "" {
		chosen = os.Getenv(variable)
	}
	switch {
	case place != "":
		if err := p.at(l, place); err != nil {
			return err
		}
	case variable == "":
		p.say(l, "stays packed (--dir %s=PATH unpacks it; it was recorded at %q)", l.Name, l.Path)
		return nil
	case chosen != "": // mutant: a cache that the user chose stands
		p.say(l, "%s is set, so the artifact's is not used (unset it, or add --dir %s=%s)", variable, l.Name, chosen)
		return nil
	default:
		var err error
		if place, err = p.inCache(l); err != nil {
			return err
		}
		if !linked {
			p.say(l, "is used from %s (--dir %s=PATH puts it elsewhere; it was recorded at %q)", place, l.Name, l.Path)
		}
	}
	if linked {
		held, err := link(l.Path, place)
		if err != nil {
			return fmt.Errorf("place directory %s: %w", l.Name, err)
		}
		p.held = append(p.held, held)
		place = l.Path
	}
	if variable != "" && chosen == "" {
		p.env = append(p.env, variable+"="+place)
	}
	return nil
}

func (p *placement) say(l *artifacts.Directory, format string, args ...any) {
	printable.Fprintf(p.log, "medusa: directory %s: %s\n", l.Name, fmt.Sprintf(format, args...))
}

// at unpacks a layer at a place of the user's.
func (p *placement) at(l *artifacts.Directory, place string) error {
	if bundled.Already(l, place) {
		return nil
	}
	if err := p.fits(); err != nil {
		return err
	}
	placed, err := bundled.PlaceAt(p.file, l, place)
	if placed.Different > 0 {
		p.say(l, "%d files at %s differ from the artifact's and stay", placed.Different, placed.Path)
	}
	return err
}

// inCache unpacks a layer in the cache of artifacts, for all starts from this artifact.
func (p *placement) inCache(l *artifacts.Directory) (string, error) {
	cache, err := store.FromEnv()
	if err != nil {
		return "", err
	}
	digest := "sha256:" + hex.EncodeToString(l.SHA256[:])
	folder, err := cache.Unpacked(digest)
	if err != nil {
		return "", err
	}
	place, room := filepath.Join(folder, l.Name), int64(0)
	if !bundled.Already(l, place) {
		if room, err = bundled.Room(l); err == nil {
			// mutant: device before directories
			err = p.fits()
		}
		if err != nil {
			return "", err
		}
	}
	pin, err := cache.Unpack(digest, room, func(string) error {
		// Existing files stay, so a user who can put one there decides which code the engine runs.
		for _, path := range []string{folder, place} {
			if err := private.Check(path); err != nil && !errors.Is(err, os.ErrNotExist) {
				return err
			}
		}
		_, err := bundled.PlaceAt(p.file, l, place)
		return err
	})
	if err != nil {
		return "", err
	}
	p.held = append(p.held, pin)
	return place, nil
}

// link makes a path of recorded caches lead to a folder, as long as the result is open. The directory that holds the link
// lies in a folder to which every user may write.
func link(path, to string) (*scratch.Folder, error) {
	held, err := scratch.Share(filepath.Dir(path), bundled.CachesPrefix, func(dir string) error {
		info, err := os.Lstat(dir)
		if err == nil && !info.IsDir() {
			err = errors.New("it is not a directory")
		}
		if err == nil {
			// mutant: compiled code from a folder of one's own
			err = private.Check(dir)
		}
		if err != nil {
			return fmt.Errorf("link caches: %s is not a directory of this user's alone: %w (if other users restore this artifact here, too, give each a /tmp of its own: a container, or PrivateTmp= of systemd)", dir, err)
		}
		return nil
	})
	if err != nil {
		return nil, err
	}
	// The engine may have given up this process's privileges, and follows the link all the same.
	if err := os.Chmod(held.Path, 0o711); err != nil {
		return nil, errors.Join(err, held.Close())
	}
	if at, err := os.Readlink(path); err == nil && at == to {
		return held, nil
	}
	part, err := scratch.Make(held.Path, ".link-")
	if err == nil {
		made := filepath.Join(part.Path, filepath.Base(path))
		if err = os.Symlink(to, made); err == nil {
			err = os.Rename(made, path)
		}
		err = errors.Join(err, part.Close())
	}
	if err != nil {
		return nil, errors.Join(err, held.Close())
	}
	return held, nil
}
