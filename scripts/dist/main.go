// Command dist packs the files that users install.
//
// In: a directory with one tree per platform, linux-amd64 and linux-arm64, as rules.mk builds them. Out, beside the trees: an
// archive and a bill of materials for each tree, an OCI image layout with an image for both platforms, a provenance statement,
// SHA256SUMS over all of them, and its signature if there is a key. Standard output lists the system requirements of each
// archive. Equal trees give equal files. Fails: a tree that has a binary for another machine, lacks a license, or cannot be
// written.
package main

import (
	"bytes"
	"crypto/ed25519"
	"crypto/sha256"
	"debug/buildinfo"
	"errors"
	"flag"
	"fmt"
	"io"
	"os"
	"path/filepath"
	"strings"

	"medusa/artifacts/trust"
)

var architectures = []string{"amd64", "arm64"}

func main() {
	dir := flag.String("dir", "build/dist", "directory with the trees")
	license := flag.String("license", "LICENSE", "this project's own license")
	key := flag.String("key", "", "Ed25519 private key (medusa keygen) that signs SHA256SUMS")
	builder := flag.String("builder", "urn:medusa:unnamed-builder", "who the provenance statement says has built")
	flag.Parse()
	if err := run(options{*dir, *license, *key, *builder}, os.Stdout); err != nil {
		fmt.Fprintf(os.Stderr, "dist: %v\n", err)
		os.Exit(1)
	}
}

type options struct{ dir, license, key, builder string }

func run(o options, out io.Writer) error {
	var version string
	var images []platform
	r := &release{dir: o.dir}
	for _, arch := range architectures {
		files, err := tree(filepath.Join(o.dir, "linux-"+arch), filepath.Join(o.dir, "licenses"), o.license)
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
		bill, err := billOfMaterials(files, name, version)
		if err != nil {
			return err
		}
		if err := errors.Join(r.add(name+".tar.gz", archive), r.add(name+".cdx.json", bill)); err != nil {
			return err
		}
		images = append(images, platform{arch, files})
		fmt.Fprintf(out, "%s.tar.gz: %d bytes, its shared objects need glibc %s\n", name, len(archive), needs)
	}
	index, err := writeLayout(filepath.Join(o.dir, "image"), version, images)
	if err != nil {
		return fmt.Errorf("write image layout: %w", err)
	}
	r.note("image/index.json", index)
	statement, err := provenanceOf(images, r.subjects, o.builder)
	if err != nil {
		return err
	}
	if err := r.add("medusa-"+version+".provenance.json", statement); err != nil {
		return err
	}
	fmt.Fprintf(out, "image: OCI layout for %s\n", strings.Join(architectures, " and "))
	return r.finish(o.key, out)
}

// release collects the files for users, and their checksums.
type release struct {
	dir      string
	subjects []resource
}

func (r *release) note(name string, data []byte) {
	r.subjects = append(r.subjects, resource{Name: name, Digest: map[string]string{"sha256": fmt.Sprintf("%x", sha256.Sum256(data))}})
}

func (r *release) add(name string, data []byte) error {
	r.note(name, data)
	return r.write(name, data)
}

func (r *release) write(name string, data []byte) error {
	if err := os.WriteFile(filepath.Join(r.dir, name), data, 0o644); err != nil {
		return fmt.Errorf("write %s: %w", name, err)
	}
	return nil
}

// finish writes the checksums, and signs them if there is a key. The signature is plain Ed25519 over the file, so OpenSSL can
// verify it without Medusa.
func (r *release) finish(key string, out io.Writer) error {
	var sums []byte
	for _, s := range r.subjects {
		sums = fmt.Appendf(sums, "%s  %s\n", s.Digest["sha256"], s.Name)
	}
	if err := r.write("SHA256SUMS", sums); err != nil {
		return err
	}
	signature := filepath.Join(r.dir, "SHA256SUMS.sig")
	if key == "" {
		fmt.Fprintln(out, "SHA256SUMS is not signed (make dist KEY=release.key)")
		if err := os.Remove(signature); err != nil && !errors.Is(err, os.ErrNotExist) {
			return fmt.Errorf("remove an earlier signature: %w", err)
		}
		return nil
	}
	private, err := trust.ReadPrivate(key)
	if err != nil {
		return err
	}
	return r.write("SHA256SUMS.sig", ed25519.Sign(private, sums))
}

// versionOf returns the version that the Go tool wrote into a tree's medusa, or "devel" if it wrote none.
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
