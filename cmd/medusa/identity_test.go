package main

import (
	"errors"
	"path/filepath"
	"strings"
	"testing"

	"medusa/artifacts"
	"medusa/graphir"
)

func TestCompareFiles(t *testing.T) {
	engine := artifacts.Identity{{Key: artifacts.KeyGPUName, Value: "x"}, {Key: "env.VLLM_X", Value: "1"}}
	write := func(name string, id artifacts.Identity) string {
		path := filepath.Join(t.TempDir(), name)
		if err := artifacts.Write(path, &artifacts.Artifact{Identity: id, Spec: &graphir.Spec{}}); err != nil {
			t.Fatal(err)
		}
		return path
	}
	fits := write("fits.medusa", engine)
	other := write("other.medusa", artifacts.Identity{{Key: artifacts.KeyGPUName, Value: "x"}, {Key: "setting.cache.block_size", Value: "32"}})
	compare := func(files ...string) (string, error) {
		var out strings.Builder
		err := compareFiles(&out, files, []artifacts.Identity{engine}, nil, "table")
		return out.String(), err
	}
	out, err := compare(other)
	if !errors.Is(err, artifacts.ErrIncompatible) {
		t.Errorf("one file that does not fit: %v", err)
	}
	for _, line := range []string{
		"setting.cache.block_size (fatal)", "  artifact  32", "  engine    (default)", "  change    give the engine cache.block_size=32",
		"env.VLLM_X (fatal)", "  artifact  (default)", "  engine    1", "  change    unset the variable VLLM_X",
	} {
		if !strings.Contains(out, line+"\n") {
			t.Errorf("no line %q in\n%s", line, out)
		}
	}
	if out, err := compare(other, fits); err != nil || !strings.Contains(out, fits+":\nno factor differs\n") {
		t.Errorf("one of two files fits: %v\n%s", err, out)
	}
	if _, err := compare(other, other); !errors.Is(err, artifacts.ErrIncompatible) {
		t.Errorf("none of two files fits: %v", err)
	}
	if _, err := compare(filepath.Join(t.TempDir(), "none"), fits); err == nil || errors.Is(err, artifacts.ErrIncompatible) {
		t.Errorf("a file that is missing: %v", err)
	}
}
