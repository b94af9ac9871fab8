package main

import (
	"archive/tar"
	"bytes"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"math/rand/v2"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
)

// materialize makes an artifact that is small, and one with a directory that takes a while to pull.
func (t *test) materialize() error {
	native := exec.Command(t.engine[0], t.engine[1:]...)
	native.Env = append(os.Environ(), "LD_LIBRARY_PATH="+filepath.Join(t.build, "simulated"))
	out, err := native.Output()
	if err != nil {
		return fmt.Errorf("start the engine natively: %w", err)
	}
	if err := json.Unmarshal(out, &t.native); err != nil {
		return err
	}
	cache := t.path("jit")
	if err := os.MkdirAll(filepath.Join(cache, "sm_90"), 0o755); err != nil {
		return err
	}
	code := make([]byte, 2<<20) // random, so that it does not compress
	r := rand.NewChaCha8([32]byte{1})
	_, _ = r.Read(code)
	if err := os.WriteFile(filepath.Join(cache, "sm_90", "kernel.cubin"), code, 0o644); err != nil {
		return err
	}
	t.large, t.small = t.path("large.medusa"), t.path("small.medusa")
	if _, _, err := t.medusa(t.path("unused"), nil, append([]string{"materialize", "-o", t.large, "--dir", "jit=" + cache, "--"}, t.engine...)...); err != nil {
		return err
	}
	_, _, err = t.medusa(t.path("unused"), []string{"SIMGPU_COMPUTE_CAPABILITY=8.0"}, append([]string{"materialize", "-o", t.small, "--"}, t.engine...)...)
	return errors.Join(err, os.RemoveAll(cache))
}

func (t *test) ref(name string) string { return t.registry.host + "/llm/tiny:" + name }

func (t *test) pushPullRestore() error {
	digest, _, err := t.medusa(t.path("unused"), nil, "push", t.large, t.ref("v1"))
	if err != nil {
		return err
	}
	byDigest := t.registry.host + "/llm/tiny@" + digest
	for i, ref := range []string{t.ref("v1"), byDigest} {
		cache := t.path(fmt.Sprintf("clean-%d", i))
		file, _, err := t.medusa(cache, nil, "pull", ref)
		if err != nil {
			return err
		}
		for _, name := range []string{file, ref} {
			if err := t.restores(cache, nil, name); err != nil {
				return err
			}
		}
	}
	// Without --dir no directory is put at the recorded path. With it, the directory goes to the place that
	// this user names.
	if _, err := os.Lstat(t.path("jit")); !errors.Is(err, fs.ErrNotExist) {
		return fmt.Errorf("a directory was put where the artifact says: %w", err)
	}
	place := t.path("place")
	if err := t.restores(t.path("clean-0"), nil, t.ref("v1"), "--dir", "jit="+place); err != nil {
		return err
	}
	if info, err := os.Stat(filepath.Join(place, "sm_90", "kernel.cubin")); err != nil || info.Size() != 2<<20 {
		return fmt.Errorf("directory is not in place: %w", err)
	}
	out := t.path("out.medusa")
	if _, _, err := t.medusa(t.path("clean-2"), nil, "pull", t.ref("v1"), "-o", out); err != nil {
		return err
	}
	a, errA := os.ReadFile(t.large)
	b, errB := os.ReadFile(out)
	if !bytes.Equal(a, b) {
		return fmt.Errorf("what was pulled differs from what was pushed (%w)", errors.Join(errA, errB))
	}
	return nil
}

func (t *test) signatures() error {
	good, other := t.path("good.key"), t.path("other.key")
	if _, _, err := t.medusa(t.path("unused"), nil, "keygen", good); err != nil {
		return err
	}
	if out, err := exec.Command("openssl", "genpkey", "-algorithm", "ed25519", "-out", other).CombinedOutput(); err != nil {
		return fmt.Errorf("openssl: %w\n%s", err, out)
	}
	if out, err := exec.Command("openssl", "pkey", "-in", other, "-pubout", "-out", other+".pub").CombinedOutput(); err != nil {
		return fmt.Errorf("openssl: %w\n%s", err, out)
	}
	if err := t.fails(t.path("signed"), nil, "no valid signature", "pull", t.ref("v1"), "--verify", good+".pub"); err != nil {
		return err
	}
	if err := t.shows(t.path("signed"), 0); err != nil {
		return err
	}
	// Two may sign the same; each key's holder accepts it.
	for _, key := range []string{good, other} {
		if _, _, err := t.medusa(t.path("unused"), nil, "push", t.large, t.ref("v1"), "--sign", key); err != nil {
			return err
		}
	}
	for _, key := range []string{good, other} {
		if _, _, err := t.medusa(t.path("signed"), nil, "pull", t.ref("v1"), "--verify", key+".pub"); err != nil {
			return err
		}
	}
	return nil
}

func (t *test) index() error {
	for _, file := range []string{t.large, t.small} {
		if _, _, err := t.medusa(t.path("unused"), nil, "push", file, t.ref("all"), "--add"); err != nil {
			return err
		}
	}
	cache := t.path("index")
	if err := t.fails(cache, nil, "2 of 2 have the factors", "pull", t.ref("all")); err != nil {
		return err
	}
	if err := t.fails(cache, nil, "0 of 2 have the factors", "pull", t.ref("all"), "--gpu", "Other GPU"); err != nil {
		return err
	}
	if _, _, err := t.medusa(cache, nil, "pull", t.ref("all"), "--gpu", "Simulated GPU", "--match", "gpu.compute_capability=9.0"); err != nil {
		return err
	}
	if err := t.restores(cache, nil, t.ref("all")); err != nil {
		return err
	}
	if _, _, err := t.medusa(cache, nil, "pull", t.ref("all"), "--match", "gpu.compute_capability=8.0"); err != nil {
		return err
	}
	// Both are in the cache now: found by factors, and by the engine's process, which takes the one that fits.
	if err := t.restores(cache, nil, "--match", "gpu.compute_capability=9.0"); err != nil {
		return err
	}
	return t.restores(cache, nil, "--auto")
}

func (t *test) bake() error {
	layer := []byte("a layer of the base")
	config := fmt.Appendf(nil, `{"architecture":"amd64","os":"linux","config":{"Env":["PATH=/bin"]},"rootfs":{"type":"layers","diff_ids":[%q]}}`, digestOf(layer))
	const kind = "application/vnd.oci.image.manifest.v1+json"
	manifest := fmt.Appendf(nil, `{"schemaVersion":2,"mediaType":%q,"config":{"mediaType":"application/vnd.oci.image.config.v1+json","digest":%q,"size":%d},`+
		`"layers":[{"mediaType":"application/vnd.oci.image.layer.v1.tar","digest":%q,"size":%d}]}`, kind, digestOf(config), len(config), digestOf(layer), len(layer))
	if err := errors.Join(t.registry.putBlob("serve", layer), t.registry.putBlob("serve", config), t.registry.putManifest("serve", "1", kind, manifest)); err != nil {
		return err
	}
	if _, _, err := t.medusa(t.path("unused"), nil, "bake", "--base", t.registry.host+"/serve:1", "--artifact", t.large, "-t", t.registry.host+"/baked:1"); err != nil {
		return err
	}
	var m struct {
		Config struct{ Digest string }
		Layers []struct{ Digest string }
	}
	var c struct{ Config struct{ Env []string } }
	if err := t.fetch("baked/manifests/1", &m); err != nil {
		return err
	}
	if err := t.fetch("baked/blobs/"+m.Config.Digest, &c); err != nil {
		return err
	}
	data, err := t.registry.get("baked/blobs/" + m.Layers[len(m.Layers)-1].Digest)
	if err != nil {
		return err
	}
	root := t.path("rootfs")
	if err := untar(data, root); err != nil {
		return err
	}
	var env []string
	for _, v := range c.Config.Env {
		if path, found := strings.CutPrefix(v, "MEDUSA_ARTIFACT="); found {
			env = append(env, "MEDUSA_ARTIFACT="+filepath.Join(root, path))
		}
	}
	if len(env) != 1 {
		return fmt.Errorf("environment %v", c.Config.Env)
	}
	return t.restores(t.path("unused"), env)
}

func (t *test) fetch(path string, out any) error {
	data, err := t.registry.get(path)
	if err != nil {
		return err
	}
	return json.Unmarshal(data, out)
}

// untar unpacks a layer as a container engine would.
func untar(data []byte, root string) error {
	r := tar.NewReader(bytes.NewReader(data))
	for {
		h, err := r.Next()
		if errors.Is(err, io.EOF) {
			return nil
		}
		if err != nil {
			return err
		}
		path := filepath.Join(root, filepath.Clean("/"+h.Name))
		content, err := io.ReadAll(r)
		if err = errors.Join(err, os.MkdirAll(filepath.Dir(path), 0o755), os.WriteFile(path, content, h.FileInfo().Mode())); err != nil {
			return err
		}
	}
}
