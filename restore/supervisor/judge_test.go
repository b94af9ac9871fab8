package supervisor

import (
	"crypto/ed25519"
	"crypto/sha256"
	"encoding/hex"
	"errors"
	"fmt"
	"io"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"medusa/artifacts"
	"medusa/artifacts/store"
	"medusa/artifacts/trust"
	"medusa/graphir"
	"medusa/restore/status"
)

// inCacheFor puts an artifact for a GPU into the cache of MEDUSA_CACHE, as used that many hours ago, signed by a key unless it is nil.
func inCacheFor(t *testing.T, gpu string, hours int, key ed25519.PrivateKey) (digest string) {
	t.Helper()
	path := filepath.Join(t.TempDir(), "a.medusa")
	if err := artifacts.Write(path, &artifacts.Artifact{Identity: artifacts.Identity{{Key: artifacts.KeyGPUName, Value: gpu}}, Spec: &graphir.Spec{}}); err != nil {
		t.Fatal(err)
	}
	cache, err := store.FromEnv()
	if err != nil {
		t.Fatal(err)
	}
	pin, err := cache.AddFile(t.Context(), path, gpu, nil)
	if err != nil {
		t.Fatal(err)
	}
	defer pin.Close()
	if key != nil {
		manifest := fmt.Appendf(nil, `{"layers":[{"digest":%q}]}`, pin.Digest)
		sum := sha256.Sum256(manifest)
		data, err := trust.Encode([]trust.Proof{{Reference: "r/" + gpu, Manifest: manifest, Signatures: []trust.Signature{{
			Key: trust.KeyID(key.Public().(ed25519.PublicKey)), Bytes: trust.Sign(key, "sha256:"+hex.EncodeToString(sum[:]), 0)}}}})
		if err == nil {
			err = cache.SetProofs(pin.Digest, data)
		}
		if err != nil {
			t.Fatal(err)
		}
	}
	used := time.Now().Add(-time.Duration(hours) * time.Hour)
	if err := os.Chtimes(pin.Path, used, used); err != nil {
		t.Fatal(err)
	}
	return pin.Digest
}

// The engine's process gets a folder with the allowed artifacts alone, in the order of their last use.
func TestAutoChoosesAmongTheAllowed(t *testing.T) {
	t.Setenv("MEDUSA_CACHE", t.TempDir())
	public, private, _ := ed25519.GenerateKey(nil)
	older, newer := inCacheFor(t, "older", 2, private), inCacheFor(t, "newer", 1, private)
	unsigned := inCacheFor(t, "unsigned", 0, nil)
	planted := inCacheFor(t, "planted", 0, private)
	cache, err := store.FromEnv()
	if err != nil {
		t.Fatal(err)
	}
	if err := os.WriteFile(filepath.Join(cache.Dir(), planted[7:]+artifacts.Suffix), []byte("other bytes"), 0o644); err != nil {
		t.Fatal(err)
	}
	var log strings.Builder
	dir, release, err := Choice{Auto: true}.resolve(trust.Require("test", public), &log)
	if err != nil {
		t.Fatal(err)
	}
	var times []time.Time
	for _, digest := range []string{older, newer} {
		path := filepath.Join(dir, digest[7:]+artifacts.Suffix)
		if _, err := artifacts.Check(path); err != nil {
			t.Error(err)
		}
		info, err := os.Lstat(path)
		if err != nil {
			t.Fatal(err)
		}
		times = append(times, info.ModTime())
	}
	if !times[0].Before(times[1]) {
		t.Errorf("used at %v", times)
	}
	if found, err := os.ReadDir(dir); err != nil || len(found) != 2 || !strings.Contains(log.String(), "1 artifacts in the cache are not considered") ||
		!strings.Contains(log.String(), unsigned) {
		t.Errorf("%v, %v, log %q", found, err, log.String())
	}
	release()
	if _, err := os.Stat(dir); !errors.Is(err, os.ErrNotExist) {
		t.Errorf("%s is left: %v", dir, err)
	}
	if _, err := os.Stat(filepath.Join(cache.Dir(), newer[7:]+artifacts.Suffix)); err != nil {
		t.Error(err)
	}
}

// probe returns options for an engine that prints Medusa's variables.
func testProbe(t *testing.T, c Choice) (o Options, out *strings.Builder) {
	dir := t.TempDir()
	out = &strings.Builder{}
	o = Options{Artifact: c, Library: filepath.Join(dir, "libmedusa_interpose.so"), Status: filepath.Join(dir, "status.json"),
		Argv: []string{"/bin/sh", "-c", `echo "[$MEDUSA_RUN] [$MEDUSA_ARTIFACT] [$MEDUSA_NATIVE] $PYTHONPATH $LD_PRELOAD"`}, Stdout: out, Stderr: io.Discard}
	if err := errors.Join(os.WriteFile(o.Library, nil, 0o644), os.Mkdir(filepath.Join(dir, "python"), 0o755)); err != nil {
		t.Fatal(err)
	}
	return o, out
}

// If an artifact cannot be used, the engine gets no variable about it, even if this process has some; the status has the reason.
func TestRefusedIsNative(t *testing.T) {
	for name, row := range map[string]struct {
		choice func(t *testing.T) Choice
		reason string
	}{
		"unsigned": {func(t *testing.T) Choice { inCacheFor(t, "gpu", 0, nil); return Choice{Ref: "gpu"} }, status.Untrusted},
		"auto":     {func(t *testing.T) Choice { inCacheFor(t, "gpu", 0, nil); return Choice{Auto: true} }, status.Untrusted},
		"match": {func(t *testing.T) Choice {
			inCacheFor(t, "gpu", 0, nil)
			return Choice{Match: []artifacts.Factor{{Key: artifacts.KeyGPUName, Value: "gpu"}}}
		}, status.Untrusted},
		"a cache of others": {func(t *testing.T) Choice {
			inCacheFor(t, "gpu", 0, nil)
			if err := os.Chmod(os.Getenv("MEDUSA_CACHE"), 0o777); err != nil {
				t.Fatal(err)
			}
			return Choice{Ref: "gpu"}
		}, status.Untrusted},
		"absent":        {func(*testing.T) Choice { return Choice{Ref: "gpu"} }, status.Missing},
		"a file absent": {func(t *testing.T) Choice { return Choice{Ref: filepath.Join(t.TempDir(), "x.medusa")} }, status.Missing},
	} {
		t.Setenv("MEDUSA_CACHE", t.TempDir())
		t.Setenv("MEDUSA_RUN", "restore")
		t.Setenv("MEDUSA_ARTIFACT", "/inherited.medusa")
		key := filepath.Join(t.TempDir(), "key")
		if err := trust.Generate(key); err != nil {
			t.Fatal(err)
		}
		o, out := testProbe(t, row.choice(t))
		o.Verify = key + ".pub"
		code, err := Run(t.Context(), o)
		st, statusErr := status.Read(o.Status)
		if err != nil || code != 0 || !strings.HasPrefix(out.String(), "[] [] ["+row.reason+": ") {
			t.Errorf("%s: exit code %d, %v, engine told %s", name, code, err, out)
		}
		// The plug-in is there for its metrics, the interposer is not.
		if dir := filepath.Dir(o.Library); !strings.Contains(out.String(), filepath.Join(dir, "python")) || strings.Contains(out.String(), o.Library) {
			t.Errorf("%s: engine told %s", name, out)
		}
		if statusErr != nil || st.Status != status.Native || st.Reason != row.reason || st.Detail == "" {
			t.Errorf("%s: status %+v, %v", name, st, statusErr)
		}
		o.Strict = true
		out.Reset()
		if _, err := Run(t.Context(), o); err == nil || out.Len() > 0 {
			t.Errorf("%s, strict: %v, engine started: %s", name, err, out)
		}
	}
}

// The switch makes starts native that would restore, also under Strict.
func TestSwitchedOff(t *testing.T) {
	cache := t.TempDir()
	t.Setenv("MEDUSA_CACHE", cache)
	inCacheFor(t, "gpu", 0, nil)
	file := filepath.Join(t.TempDir(), "stop")
	for _, row := range []struct {
		value string
		make  string // a file that is there
		off   bool
	}{
		{"", "", false}, {"", filepath.Join(cache, "off"), true}, {"0", filepath.Join(cache, "off"), false},
		{"1", "", true}, {"true", "", true}, {"yes", "", true}, {file, "", false}, {file, file, true},
	} {
		t.Setenv("MEDUSA_OFF", row.value)
		if row.make != "" {
			if err := os.WriteFile(row.make, nil, 0o600); err != nil {
				t.Fatal(err)
			}
		}
		for _, strict := range []bool{false, true} {
			o, out := testProbe(t, Choice{Ref: "gpu"})
			o.Strict = strict
			_, err := Run(t.Context(), o)
			st, _ := status.Read(o.Status)
			if off := st != nil && st.Reason == status.SwitchedOff; off != row.off || off != strings.HasPrefix(out.String(), "[] []") || off && err != nil {
				t.Errorf("MEDUSA_OFF=%q, %q there, strict %v: %v, status %+v, engine told %s", row.value, row.make, strict, err, st, out)
			}
		}
		if row.make != "" {
			if err := os.Remove(row.make); err != nil {
				t.Fatal(err)
			}
		}
	}
}

// A name that looks like a file is one, even if no such file exists.
func TestIsPath(t *testing.T) {
	t.Chdir(t.TempDir())
	for _, name := range []string{"llama", "r", "sha256:00"} {
		if err := os.WriteFile(name, nil, 0o600); err != nil {
			t.Fatal(err)
		}
	}
	for ref, want := range map[string]bool{"llama": false, "r": false, "sha256:00": false, "r/llama:v1": false, ".r/x:1": false, "./llama": true,
		"../llama": true, "/llama": true, "llama.medusa": true, "dir/llama.medusa": true} {
		if got := isPath(ref); got != want {
			t.Errorf("%s: %v", ref, got)
		}
	}
}
