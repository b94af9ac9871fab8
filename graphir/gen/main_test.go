package main

import (
	"bytes"
	"os"
	"testing"
)

// The committed code is the output of the generator.
func TestGeneratedCodeIsCurrent(t *testing.T) {
	for proto, code := range map[string]string{
		"../graph.proto":                 "../graphpb/graph.pb.go",
		"../../artifacts/artifact.proto": "../../artifacts/artifactpb/artifact.pb.go",
	} {
		want, err := generate(proto)
		if err != nil {
			t.Fatal(err)
		}
		got, err := os.ReadFile(code)
		if err != nil {
			t.Fatal(err)
		}
		if !bytes.Equal(got, want) {
			t.Errorf("%s is not generated from %s (run go generate ./graphir ./artifacts)", code, proto)
		}
	}
}

func TestErrorsNameTheFile(t *testing.T) {
	path := t.TempDir() + "/broken.proto"
	if err := os.WriteFile(path, []byte("message {"), 0o644); err != nil {
		t.Fatal(err)
	}
	for _, args := range [][]string{nil, {"missing.proto", "out"}, {path, "out"}} {
		if err := run(args); err == nil {
			t.Errorf("%q did not fail", args)
		}
	}
}
