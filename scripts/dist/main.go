// Command dist packs what users install.
//
// In: a directory with one tree for each platform, linux-amd64 and linux-arm64, as rules.mk builds them. Out, beside them: an
// archive a tree, an OCI image layout with an image for both platforms, SHA256SUMS over the archives and the layout's index,
// and on standard output what each needs of the system. Equal trees give equal files. Fails where a tree holds a binary
// for another machine, or writing does.
package main

import (
	"bytes"
	"crypto/sha256"
	"debug/buildinfo"
	"flag"
	"fmt"
	"io"
	"os"
	"path/filepath"
	"slices"
	"strings"
)

var architectures = []string{"amd64", "arm64"}

func main() {
	dir := flag.String("dir", "build/dist", "directory with the trees")
	license := flag.String("license", "LICENSE", "file that goes along")
	flag.Parse()
	if err := run(*dir, *license, os.Stdout); err != nil {
		fmt.Fprintf(os.Stderr, "dist: %v\n", err)
		os.Exit(1)
	}
}

func run(dir, license string, out io.Writer) error {
	var version string
	var sums []string
	var images []platform
	for _, arch := range architectures {
		files, err := tree(filepath.Join(dir, "linux-"+arch), license)
		if err != nil {
			return err
		}
		needs, err := examine(files, arch)
		if err != nil {
			return err
		}
		if version, err = versionOf(files); err != nil {
			return err
		}
		name := fmt.Sprintf("medusa-%s-linux-%s", version, arch)
		archive, err := pack(files, name+"/")
		if err != nil {
			return fmt.Errorf("pack %s: %w", name, err)
		}
		path := filepath.Join(dir, name+".tar.gz")
		if err := os.WriteFile(path, archive, 0o644); err != nil {
			return fmt.Errorf("write archive: %w", err)
		}
		sums = append(sums, sum(archive, name+".tar.gz"))
		images = append(images, platform{arch, files})
		fmt.Fprintf(out, "%s.tar.gz: %d bytes, its shared objects need glibc %s\n", name, len(archive), needs)
	}
	index, err := writeLayout(filepath.Join(dir, "image"), version, images)
	if err != nil {
		return fmt.Errorf("write image layout: %w", err)
	}
	sums = append(sums, sum(index, "image/index.json"))
	slices.Sort(sums)
	if err := os.WriteFile(filepath.Join(dir, "SHA256SUMS"), []byte(strings.Join(sums, "")), 0o644); err != nil {
		return fmt.Errorf("write checksums: %w", err)
	}
	fmt.Fprintf(out, "image: OCI layout for %s\n", strings.Join(architectures, " and "))
	return nil
}

// versionOf is the version that the Go tool wrote into a tree's medusa; "devel" where it knew none.
func versionOf(files []file) (string, error) {
	for _, f := range files {
		if f.name != "medusa" {
			continue
		}
		info, err := buildinfo.Read(bytes.NewReader(f.data))
		if err != nil {
			return "", fmt.Errorf("read version: %w", err)
		}
		if info.Main.Version != "" && info.Main.Version != "(devel)" {
			return strings.ReplaceAll(info.Main.Version, "+", "-"), nil // tags have no "+"
		}
	}
	return "devel", nil
}

func sum(data []byte, name string) string { return fmt.Sprintf("%x  %s\n", sha256.Sum256(data), name) }
