package restore

import (
	"errors"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"medusa/artifacts"
	"medusa/graphir"
)

func TestChoose(t *testing.T) {
	dir := t.TempDir()
	write := func(name, gpu, driver string, used time.Time) string {
		path := filepath.Join(dir, name)
		id := artifacts.Identity{{Key: artifacts.KeyGPUName, Value: gpu}, {Key: artifacts.KeyDriverVersion, Value: driver}}
		if err := errors.Join(artifacts.Write(path, &artifacts.Artifact{Identity: id, Spec: &graphir.Spec{}}), os.Chtimes(path, used, used)); err != nil {
			t.Fatal(err)
		}
		return path
	}
	now := time.Now()
	write("a.medusa", "H200", "580", now.Add(-time.Hour))
	older := write("b.medusa", "H200", "590", now.Add(-3*time.Hour))
	newer := write("c.medusa", "H200", "590", now.Add(-2*time.Hour))
	write("d.medusa", "B200", "590", now)
	write("e.medusa.aside", "H200", "590", now)
	if err := os.WriteFile(filepath.Join(dir, "damaged.medusa"), []byte("x"), 0o644); err != nil {
		t.Fatal(err)
	}
	process := func(gpu, driver string) artifacts.Identity {
		return artifacts.Identity{{Key: artifacts.KeyGPUName, Value: gpu}, {Key: artifacts.KeyDriverVersion, Value: driver}}
	}
	s := &source{}
	if f := s.choose(dir, rank{}, process("H200", "590"), nil); f != nil || s.artifact == nil {
		t.Fatal(f)
	}
	// The last used of the two that fit, which is now the last used of all.
	if info, err := os.Stat(newer); err != nil || info.ModTime().Before(now.Add(-time.Minute)) {
		t.Errorf("%s was not taken: %v", newer, err)
	}
	if info, err := os.Stat(older); err != nil || info.ModTime().After(now.Add(-time.Minute)) {
		t.Errorf("%s was taken: %v", older, err)
	}
	none, relaxed := &source{}, artifacts.Relaxed(nil)
	if f := none.choose(dir, rank{}, process("H200", "600"), relaxed); f == nil || f.Code != Incompatible || !strings.Contains(f.Error(), `driver.version: want "590", got "600"`) {
		t.Errorf("no driver like it: %v", f)
	}
	relaxed = artifacts.Relaxed{artifacts.KeyDriverVersion}
	if f := none.choose(dir, rank{}, process("H200", "600"), relaxed); f != nil {
		t.Errorf("relaxed: %v", f)
	}
	if f := (&source{}).choose(t.TempDir(), rank{}, nil, nil); f == nil || f.Code != ArtifactMissing {
		t.Errorf("empty folder: %v", f)
	}
	only := t.TempDir()
	if err := os.WriteFile(filepath.Join(only, "damaged.medusa"), []byte("x"), 0o644); err != nil {
		t.Fatal(err)
	}
	if f := (&source{}).choose(only, rank{}, nil, nil); f == nil || f.Code != ArtifactCorrupt {
		t.Errorf("damaged: %v", f)
	}
}
