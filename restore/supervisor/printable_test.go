package supervisor

import (
	"encoding/json"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"medusa/artifacts"
	"medusa/artifacts/trust"
	"medusa/graphir"
	"medusa/restore/status"
)

// A file's account of itself is text, in the terminal and in the variable that tells the engine's process why it starts natively.
func TestLinesAreText(t *testing.T) {
	const evil = "r.example/m:\x1b[2J\u009b1m\x00\rx\u202e\nforged"
	dir := t.TempDir()
	o, log := withoutMedusa(t, `printf %s "$MEDUSA_NATIVE" >"$0"`, filepath.Join(dir, "reason"))
	path := filepath.Join(dir, "x.medusa")
	if err := artifacts.Write(path, &artifacts.Artifact{Spec: &graphir.Spec{}}); err != nil {
		t.Fatal(err)
	}
	proof, err := json.Marshal([]trust.Proof{{Reference: evil, Manifest: []byte("{}"), Signatures: []trust.Signature{{}}}})
	if err == nil {
		err = os.WriteFile(path+trust.Suffix, proof, 0o644)
	}
	key := filepath.Join(dir, "key")
	if err == nil {
		err = trust.Generate(key)
	}
	if err != nil {
		t.Fatal(err)
	}
	o.Artifact, o.Verify = Choice{Ref: path}, key+".pub"
	if code, err := Run(t.Context(), o); err != nil || code != 0 {
		t.Errorf("exit code %d, error %v", code, err)
	}
	said, err := os.ReadFile(filepath.Join(dir, "reason"))
	if err != nil {
		t.Fatal(err)
	}
	for where, text := range map[string]string{"line": log(), "variable": string(said)} {
		if strings.ContainsAny(text, "\x1b\u009b\x00\r\u202e") || !strings.Contains(text, `\x1b[2J`) {
			t.Errorf("%s: %q", where, text)
		}
	}
	if st, err := status.Read(o.Status); err != nil || st.Reason != status.Untrusted || !strings.Contains(st.Detail, evil) {
		t.Errorf("status %+v, error %v: its text is exact", st, err)
	}
}
