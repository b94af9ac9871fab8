package main

import (
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"
)

// Packages that are packed in parts are unpacked unchanged, but for the files that are left out. If a part is
// damaged, unpacking fails.
func TestPartsOfPackages(t *testing.T) {
	dir := t.TempDir()
	python := func(args ...string) (string, error) {
		cmd := exec.Command("python3", args...)
		cmd.Env = append(os.Environ(), "PYTHONPATH=vllm", "PYTHONDONTWRITEBYTECODE=1")
		out, err := cmd.CombinedOutput()
		return string(out), err
	}
	const made = `
import lzma, os, sys, tarfile, zipfile
import pack
folder = sys.argv[1]
wheel, site, parts = (os.path.join(folder, name) for name in ("x-1-py3-none-any.whl", "site", "parts"))
with zipfile.ZipFile(wheel, "w") as z:
    for name in ("x/__init__.py", "x-1.data/purelib/y.py", "x/kernels.cu", "vllm/vllm_flash_attn/_vllm_fa2_C.abi3.so", "vllm/_C.abi3.so"):
        z.writestr(name, os.urandom(3000))
pack.lay_out(wheel, site)
os.mkdir(parts)
out = pack.Parts(parts, 1000)
with lzma.LZMAFile(out, "w") as f, tarfile.open(fileobj=f, mode="w|") as tar:
    tar.add(site, arcname=".")
out.close()
with open(os.path.join(parts, "SHA256SUMS"), "w") as f:
    f.writelines(pack.sums(parts))
print(len(out.names), sorted(os.path.relpath(os.path.join(d, n), site) for d, _, names in os.walk(site) for n in names))
`
	out, err := python("-c", made, dir)
	if want := "['vllm/_C.abi3.so', 'x/__init__.py', 'y.py']"; err != nil || !strings.Contains(out, want) {
		t.Fatalf("%v: %s, want %s", err, out, want)
	}
	parts, got := filepath.Join(dir, "parts"), filepath.Join(dir, "got")
	if out, err := python("vllm/pack.py", "unpack", parts, got); err != nil {
		t.Fatalf("unpack: %v: %s", err, out)
	}
	for _, name := range []string{"vllm/_C.abi3.so", "x/__init__.py", "y.py"} {
		want, err := os.ReadFile(filepath.Join(dir, "site", name))
		if err != nil {
			t.Fatal(err)
		}
		if data, err := os.ReadFile(filepath.Join(got, name)); err != nil || string(data) != string(want) {
			t.Errorf("%s: %d bytes, want %d (%v)", name, len(data), len(want), err)
		}
	}
	if err := os.WriteFile(filepath.Join(parts, "part-03"), []byte("other"), 0o644); err != nil {
		t.Fatal(err)
	}
	if out, err := python("vllm/pack.py", "unpack", parts, filepath.Join(dir, "none")); err == nil || !strings.Contains(out, "missing or damaged") {
		t.Errorf("a damaged part: %v: %s", err, out)
	}
}
