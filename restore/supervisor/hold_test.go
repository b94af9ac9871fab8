package supervisor

import (
	"bytes"
	"encoding/json"
	"errors"
	"io"
	"os"
	"path/filepath"
	"testing"

	"medusa/internal/contract"
	"medusa/restore/status"
)

// engineOf is the input of Hold. When Hold reads it, the engine's processes run: they get the environment that Hold has written, and do something.
type engineOf struct {
	out  *bytes.Buffer
	runs func(env map[string]*string)
}

func (e *engineOf) Read([]byte) (int, error) {
	var env map[string]*string
	if err := json.Unmarshal(e.out.Bytes(), &env); err != nil {
		return 0, err
	}
	e.runs(env)
	return 0, io.EOF
}

// What Hold prepares lasts as long as the engine, and an artifact that cost it its device is not tried again.
func TestHold(t *testing.T) {
	t.Setenv(contract.EnvCache, t.TempDir())
	for _, lost := range []bool{false, true} {
		path := filepath.Join(t.TempDir(), "x.medusa")
		golden, err := os.ReadFile(filepath.Join("..", "..", "artifacts", "testdata", "v1.medusa"))
		if err = errors.Join(err, os.WriteFile(path, golden, 0o644)); err != nil {
			t.Fatal(err)
		}
		var out, said bytes.Buffer
		folder, wrong := "", errors.New("the engine did not run")
		in := &engineOf{&out, func(env map[string]*string) {
			wrong = nil
			file := env[contract.EnvStatus]
			if file == nil || env[contract.EnvRun] == nil || *env[contract.EnvRun] != "restore" {
				wrong = errors.New("it is not to be restored")
				return
			}
			if folder = filepath.Dir(*file); lost {
				wrong = status.Write(*file, &status.Status{Status: status.Sticky})
			}
			if _, err := os.Stat(*env[contract.EnvRendezvous]); err != nil {
				wrong = err
			}
		}}
		err = Hold(t.Context(), Options{Artifact: Choice{Ref: path}, Library: "/lib/x.so", Stderr: &said}, in, &out)
		if err = errors.Join(err, wrong); err != nil {
			t.Fatalf("%v, said %q", err, said.String())
		}
		if _, err := os.Stat(folder); err == nil {
			t.Error("the start's folder is left")
		}
		if _, err := os.Stat(path); (err != nil) != lost {
			t.Errorf("lost device %v: %v", lost, err)
		}
	}
}

func TestChanges(t *testing.T) {
	got := changes([]string{"A=1", "B=2", "C=3", "D="}, []string{"A=1", "B=4", "D=", "E=5=6"})
	text, err := json.Marshal(got)
	if want := `{"B":"4","C":null,"E":"5=6"}`; err != nil || string(text) != want {
		t.Errorf("%s, want %s", text, want)
	}
}
