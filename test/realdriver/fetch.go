package main

import (
	"context"
	"errors"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"
)

// suites are the releases of Debian that have had drivers of the wanted series in their component non-free, oldest first.
var suites = []string{"bookworm", "trixie", "sid", "experimental"}

// wheels are the runtimes and libraries that are tried, as pip names them. Their code is called, never run on a device.
var wheels = []string{"nvidia-cuda-runtime-cu12==12.4.127", "nvidia-cuda-runtime==13.0.96", "nvidia-cublas==13.1.0.3"}

// fetcher puts packages of others into a folder. It does not install them.
type fetcher struct {
	dir    string
	mirror string // of Debian; empty: the one that this machine's own packages come from
}

// driver returns the folder that has libcuda.so.1 of a series, such as 550, and the driver's version.
func (f *fetcher) driver(ctx context.Context, series string) (folder, version string, err error) {
	root := filepath.Join(f.dir, "driver-"+series)
	if folder, version, err = findDriver(root); err == nil {
		return folder, version, nil
	}
	packages, err := f.candidates(ctx)
	if err != nil {
		return "", "", err
	}
	for _, p := range packages {
		if !strings.HasPrefix(p, series+".") {
			continue
		}
		if _, err := f.command(ctx, f.dir, "apt-get", append(f.aptOptions(), "download", "libcuda1="+p)...); err != nil {
			return "", "", err
		}
		// The name of the file spells a colon otherwise; versions of this package have none.
		files, err := filepath.Glob(filepath.Join(f.dir, "libcuda1_"+p+"_*.deb"))
		if err != nil || len(files) != 1 {
			return "", "", fmt.Errorf("fetch libcuda1 %s: %d files downloaded", p, len(files))
		}
		if _, err := f.command(ctx, f.dir, "dpkg-deb", "-x", files[0], root); err != nil {
			return "", "", err
		}
		return findDriver(root)
	}
	return "", "", fmt.Errorf("fetch libcuda1 of series %s: %s (non-free of %s) has versions %s", series, f.mirror,
		strings.Join(suites, ", "), strings.Join(packages, ", "))
}

func findDriver(root string) (folder, version string, err error) {
	files, err := filepath.Glob(filepath.Join(root, "usr/lib/*/nvidia/current/libcuda.so.*.*"))
	if err != nil || len(files) != 1 {
		return "", "", fmt.Errorf("%d drivers in %s, want one", len(files), root)
	}
	return filepath.Dir(files[0]), strings.TrimPrefix(filepath.Base(files[0]), "libcuda.so."), nil
}

// candidates returns the versions of libcuda1 that apt finds with a list of sources of our own.
func (f *fetcher) candidates(ctx context.Context) ([]string, error) {
	etc := filepath.Join(f.dir, "apt")
	if err := errors.Join(os.MkdirAll(filepath.Join(etc, "lists", "partial"), 0o755), os.MkdirAll(filepath.Join(etc, "parts"), 0o755),
		os.MkdirAll(filepath.Join(etc, "cache", "archives", "partial"), 0o755), os.WriteFile(filepath.Join(etc, "status"), nil, 0o644)); err != nil {
		return nil, err
	}
	var sources strings.Builder
	if err := f.findMirror(ctx); err != nil {
		return nil, err
	}
	for _, suite := range suites {
		fmt.Fprintf(&sources, "deb [signed-by=/usr/share/keyrings/debian-archive-keyring.gpg] %s %s non-free\n", f.mirror, suite)
	}
	if err := os.WriteFile(filepath.Join(etc, "sources.list"), []byte(sources.String()), 0o644); err != nil {
		return nil, err
	}
	if _, err := f.command(ctx, f.dir, "apt-get", append(f.aptOptions(), "update", "--error-on=any")...); err != nil {
		return nil, err
	}
	out, err := f.command(ctx, f.dir, "apt-cache", append(f.aptOptions(), "madison", "libcuda1")...)
	if err != nil {
		return nil, err
	}
	var versions []string
	for line := range strings.Lines(out) {
		if fields := strings.Split(line, "|"); len(fields) == 3 {
			versions = append(versions, strings.TrimSpace(fields[1]))
		}
	}
	return slices.Compact(versions), nil
}

// findMirror takes the one that the machine's own packages come from.
func (f *fetcher) findMirror(ctx context.Context) error {
	if f.mirror != "" {
		return nil
	}
	out, err := f.command(ctx, f.dir, "apt-get", "indextargets", "--format", "$(REPO_URI)", "Created-By: Packages", "Origin: Debian", "Component: main")
	if err != nil {
		return err
	}
	for line := range strings.Lines(out) {
		if uri := strings.TrimSpace(line); !strings.Contains(uri, "security") {
			f.mirror = uri
			return nil
		}
	}
	return errors.New("fetch libcuda1: this machine's apt knows no mirror of Debian (name one: MIRROR=)")
}

// aptOptions keep apt away from the machine's own sources, lists and packages.
func (f *fetcher) aptOptions() []string {
	etc := filepath.Join(f.dir, "apt")
	var out []string
	for _, option := range []string{"Dir::Etc::sourcelist=" + etc + "/sources.list", "Dir::Etc::sourceparts=" + etc + "/parts",
		"Dir::State::lists=" + etc + "/lists", "Dir::State::status=" + etc + "/status", "Dir::Cache=" + etc + "/cache",
		"Debug::NoLocking=1", "APT::Sandbox::User=" + os.Getenv("USER"), "Acquire::Languages=none"} {
		out = append(out, "-o"+option)
	}
	return out
}

// libraries returns the file of each shared object of the wheels, by its name.
func (f *fetcher) libraries(ctx context.Context) (map[string]string, error) {
	root := filepath.Join(f.dir, "wheels")
	for _, wheel := range wheels {
		done := filepath.Join(root, wheel)
		if _, err := os.Stat(done); err == nil {
			continue
		}
		if _, err := f.command(ctx, f.dir, "python3", "-m", "pip", "install", "--quiet", "--no-deps", "--only-binary=:all:", "--no-compile",
			"--no-cache-dir", "--platform=manylinux_2_27_x86_64", "--platform=manylinux2014_x86_64", "--target", done+".new", wheel); err != nil {
			return nil, err
		}
		if err := os.Rename(done+".new", done); err != nil {
			return nil, err
		}
	}
	out := map[string]string{}
	files, err := filepath.Glob(filepath.Join(root, "*", "nvidia", "*", "lib", "lib*.so.*"))
	for _, file := range files {
		out[filepath.Base(file)] = file
	}
	return out, err
}

// command runs a program to its end and returns its output. Its error has the program's last words.
func (f *fetcher) command(ctx context.Context, dir, name string, args ...string) (string, error) {
	cmd := exec.CommandContext(ctx, name, args...)
	cmd.Dir = dir
	var problems strings.Builder
	cmd.Stderr = &problems
	out, err := cmd.Output()
	if err != nil {
		return "", fmt.Errorf("fetch packages: %s: %w: %s", strings.Join(append([]string{name}, args...), " "), err,
			strings.Join(strings.Fields(problems.String()), " "))
	}
	return string(out), nil
}
