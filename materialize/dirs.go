package materialize

import (
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"slices"

	"medusa/artifacts"
	"medusa/artifacts/bundled"
	"medusa/internal/private"
)

// Dir is a directory that is bundled with the artifact, such as the cache of a JIT compiler.
type Dir struct {
	Name, Path string
	own        bool // made for this series: it is bundled only if a run wrote to it
}

// withCaches gives each JIT compiler's cache a folder of this series' own, in which exactly the output of the runs is kept, and
// returns the variables that tell the engine. A folder that the user chose by its variable is used as it is, and is bundled only if it is
// among dirs.
func withCaches(dirs []Dir, scratch string, note func(string)) (all []Dir, env []string) {
	all = slices.Clone(dirs)
	for _, c := range bundled.Caches {
		i := slices.IndexFunc(dirs, func(d Dir) bool { return d.Name == c.Name })
		switch chosen := os.Getenv(c.Variable); {
		case chosen == "" && i < 0:
			path := filepath.Join(scratch, c.Name)
			all = append(all, Dir{c.Name, path, true})
			env = append(env, c.Variable+"="+path)
		case chosen == "":
			env = append(env, c.Variable+"="+dirs[i].Path)
		case i < 0:
			note(fmt.Sprintf("directory %s: what lies at %s does not travel (unset %s, or add --dir %[1]s=%[2]s)", c.Name, chosen, c.Variable))
		}
	}
	return all, env
}

// packDirs packs the directories as the runs have left them, and notes the symbolic links that are left out. The layers' contents are files in scratch;
// closing ends their use.
func packDirs(dirs []Dir, scratch string, note func(string)) (layers []artifacts.Directory, closing func() error, err error) {
	var files []*os.File
	closing = func() error {
		var errs []error
		for _, f := range files {
			errs = append(errs, f.Close())
		}
		return errors.Join(errs...)
	}
	for i, d := range dirs {
		if left, err := os.ReadDir(d.Path); d.own && (errors.Is(err, os.ErrNotExist) || err == nil && len(left) == 0) {
			continue
		}
		f, err := private.Replace(filepath.Join(scratch, fmt.Sprintf("layer-%d.tar.zst", i)))
		if err != nil {
			return nil, closing, fmt.Errorf("pack directory %s: %w", d.Name, err)
		}
		files = append(files, f)
		l, err := bundled.Pack(d.Name, d.Path, f, func(path string) {
			note(fmt.Sprintf("directory %s: symbolic link %s stays behind (the program that made it makes it again)", d.Name, path))
		})
		if err != nil {
			return nil, closing, err
		}
		layers = append(layers, l)
	}
	return layers, closing, nil
}

// checkDirs finds mistakes that would show after minutes of recording. A directory need not exist yet: the engine may make it.
func checkDirs(dirs []Dir) error {
	for i, d := range dirs {
		if slices.ContainsFunc(dirs[:i], func(e Dir) bool { return e.Name == d.Name }) {
			return fmt.Errorf("pack directory %s: it is named twice", d.Name)
		}
		if info, err := os.Stat(d.Path); err == nil && !info.IsDir() {
			return fmt.Errorf("pack directory %s: %s is not a directory", d.Name, d.Path)
		}
		if err := artifacts.CheckDirectoryName(d.Name); err != nil {
			return err
		}
	}
	return nil
}
