package interpose

import (
	"bytes"
	"errors"
	"fmt"
	"io"
	"os"
	"os/exec"
	"path/filepath"
	"strings"

	"medusa/internal/contract"
)

// errNoLibrary means that no interposer was found.
var errNoLibrary = errors.New("no " + LibraryName)

// inWheel is the folder of the interposer in a wheel's package.
const inWheel = "medusa_graphs/lib"

// places lead from the command's folder to the interposer's: of an archive and of build, of other layouts, of make install, and of a wheel, which pip
// has put into an environment or into a folder (--target).
var places = []string{"lib", "../lib", "../lib/medusa", "../lib*/python3*/*-packages/" + inWheel, "../" + inWheel}

// FindLibrary returns the interposer that MEDUSA_LIB names (the file or its folder), or else the one of an installation to which the running
// executable belongs. Its error wraps errNoLibrary, or says that the path cannot be preloaded.
func FindLibrary() (string, error) {
	library, err := findLibrary()
	if err == nil {
		err = CheckPlace(library)
	}
	if err != nil {
		return "", err
	}
	return library, nil
}

func findLibrary() (string, error) {
	if lib := os.Getenv(contract.EnvLib); lib != "" {
		if st, err := os.Stat(lib); err == nil && st.IsDir() {
			lib = filepath.Join(lib, LibraryName)
		}
		if _, err := os.Stat(lib); err != nil {
			return "", fmt.Errorf("find interposer: %w at "+contract.EnvLib+": %w", errNoLibrary, err)
		}
		return lib, nil
	}
	exe, err := os.Executable()
	if err != nil {
		return "", fmt.Errorf("find interposer: %w", err)
	}
	if path := installed(filepath.Dir(exe)); path != "" {
		return path, nil
	}
	return "", fmt.Errorf("find interposer: %w in lib or ../lib beside %s (build it with make, or set "+contract.EnvLib+")", errNoLibrary, exe)
}

// installed is the interposer of the installation whose command is in a folder, or "".
func installed(dir string) string {
	for _, place := range places {
		found, err := filepath.Glob(filepath.Join(dir, place, LibraryName))
		if err == nil && len(found) > 0 {
			return filepath.Clean(found[0])
		}
	}
	return ""
}

// Plugins returns the folder of the plug-ins for engines in Python, beside the interposer. It is empty for an interposer of a wheel: there the engine's
// Python has them.
func Plugins(library string) (string, error) {
	library, err := filepath.Abs(library)
	if err != nil {
		return "", err
	}
	folder := filepath.Join(filepath.Dir(library), "python")
	st, err := os.Stat(folder)
	switch {
	case err == nil && st.IsDir():
		return folder, nil
	case strings.HasSuffix(filepath.ToSlash(filepath.Dir(library)), "/"+inWheel):
		return "", nil
	}
	return "", fmt.Errorf("find plug-ins: there are none at %s, and an engine in Python needs them (make builds them; %s may name another installation)", folder, contract.EnvLib)
}

// PluginsFor returns why an engine lacks the plug-ins that it needs. Only an engine in Python needs them.
func PluginsFor(argv []string, library string) error {
	if _, err := Plugins(library); err != nil && inPython(argv[0]) {
		return err
	}
	return nil
}

// inPython reports whether a command is an interpreter of Python or begins with a line that names one, as scripts do that pip has installed.
func inPython(command string) bool {
	path, err := exec.LookPath(command)
	if err != nil {
		return false
	}
	if strings.HasPrefix(filepath.Base(path), "python") {
		return true
	}
	f, err := os.Open(path)
	if err != nil {
		return false
	}
	defer f.Close()
	start := make([]byte, 512)
	n, _ := io.ReadFull(f, start)
	// An interpreter with a long path is on the second line, behind exec.
	lines := bytes.SplitN(start[:n], []byte("\n"), 3)
	return bytes.HasPrefix(lines[0], []byte("#!")) && bytes.Contains(bytes.Join(lines[:min(2, len(lines))], nil), []byte("python"))
}
