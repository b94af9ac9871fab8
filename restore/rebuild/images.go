package rebuild

import (
	"bufio"
	"crypto/sha256"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"strings"

	"medusa/graphir"
	"medusa/internal/contract"
	"medusa/internal/cuda"
	"medusa/restore/live"
)

// reload loads a module that neither the engine nor a triggering kernel has loaded, from its shared object if this
// process has that mapped, else from the image that the artifact embeds. The bytes are the recorded ones in either case.
func (r *resolver) reload(index uint32) error {
	m := &r.spec.Modules[index]
	if !m.Reload {
		return errors.New("it may not be loaded from its image: options or variables that a copy would not have")
	}
	image, err := imageInProcess(m)
	from := foundObject
	if image == nil {
		image, from = r.spec.Image(m), foundArtifact
	}
	if image == nil {
		return errors.Join(errors.New("the artifact does not embed its image"), err)
	}
	image = append(image[:len(image):len(image)], 0) // text needs an end; to code it makes no difference
	loaded := live.Module{Module: contract.Module{ImageSHA256: m.ImageSHA256, ImageSize: m.ImageSize}}
	if m.Kind == graphir.ModuleLibrary {
		loaded.IsLibrary = 1
		var library cuda.LibraryHandle
		library, err = cuda.LibraryLoadData(image)
		loaded.Handle = uint64(library)
	} else {
		var module cuda.Module
		module, err = cuda.ModuleLoadData(image)
		loaded.Handle = uint64(module)
	}
	if err != nil {
		return err
	}
	r.loaded = append(r.loaded, loaded)
	r.reloaded = append(r.reloaded, loaded)
	r.copies[loaded.Handle] = from
	return nil
}

// unload gives back the modules of reload.
func unload(modules []live.Module) error {
	var errs []error
	for _, m := range modules {
		if m.IsLibrary != 0 {
			errs = append(errs, cuda.LibraryHandle(m.Handle).Unload())
		} else {
			errs = append(errs, cuda.Module(m.Handle).Unload())
		}
	}
	return errors.Join(errs...)
}

// imageInProcess reads a module's image from the shared object that held it when it was recorded, by its place in that
// file. nil without an error: the module lies in none, or the process has none of that name.
func imageInProcess(m *graphir.Module) ([]byte, error) {
	if m.DSO == "" {
		return nil, nil
	}
	paths, err := mappedFiles(m.DSO)
	if err != nil {
		return nil, err
	}
	for _, path := range paths {
		image, readErr := readImage(path, m)
		if readErr == nil {
			return image, nil
		}
		err = readErr
	}
	return nil, err
}

func readImage(path string, m *graphir.Module) ([]byte, error) {
	f, err := os.Open(path)
	if err != nil {
		return nil, err
	}
	defer f.Close()
	info, err := f.Stat()
	if err != nil {
		return nil, err
	}
	if size := uint64(info.Size()); m.DSOOffset > size || m.ImageSize > size-m.DSOOffset {
		return nil, fmt.Errorf("read image of %s: %d bytes at %d of %d", path, m.ImageSize, m.DSOOffset, size)
	}
	image := make([]byte, m.ImageSize, m.ImageSize+1)
	if _, err := f.ReadAt(image, int64(m.DSOOffset)); err != nil {
		return nil, fmt.Errorf("read image of %s: %w", path, err)
	}
	// mutant: hash of a reloaded image
	if sha256.Sum256(image) != m.ImageSHA256 {
		return nil, fmt.Errorf("read image of %s: it is another one than recorded", path)
	}
	return image, nil
}

// mappedFiles lists the files of a base name that this process has mapped.
func mappedFiles(base string) ([]string, error) {
	maps, err := os.Open("/proc/self/maps")
	if err != nil {
		return nil, err
	}
	defer maps.Close()
	var paths []string
	seen := map[string]bool{}
	lines := bufio.NewScanner(maps)
	for lines.Scan() {
		_, path, found := strings.Cut(lines.Text(), "/")
		if path = "/" + path; found && filepath.Base(path) == base && !seen[path] {
			seen[path] = true
			paths = append(paths, path)
		}
	}
	return paths, lines.Err()
}
