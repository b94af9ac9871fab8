package supervisor

import (
	"context"
	"io"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"medusa/test/coldfile"
)

// While the engine does something else, its weights come into the page cache. Without them it starts all the same.
func TestWeights(t *testing.T) {
	folder := coldfile.Folder(t)
	const size = 1 << 20
	weights, goOn, library := coldfile.Make(t, filepath.Join(folder, "weights"), size), filepath.Join(folder, "go-on"), filepath.Join(folder, "library.so")
	if err := os.WriteFile(library, nil, 0o600); err != nil {
		t.Fatal(err)
	}
	most := make(chan int, 1) // a kernel may take pages back that were there
	go func() {
		resident := coldfile.Resident(t, weights)
		for end := time.Now().Add(20 * time.Second); time.Now().Before(end) && resident < size; {
			time.Sleep(time.Millisecond)
			resident = max(resident, coldfile.Resident(t, weights))
		}
		most <- resident
		_ = os.WriteFile(goOn, nil, 0o600)
	}()
	log, err := os.Create(filepath.Join(folder, "log")) // several goroutines write to it
	if err != nil {
		t.Fatal(err)
	}
	defer log.Close()
	logged := func() string {
		t.Helper()
		text, err := os.ReadFile(log.Name())
		if err != nil {
			t.Fatal(err)
		}
		return string(text)
	}
	engine := `while [ ! -e "` + goOn + `" ]; do sleep 0.01; done`
	run := func(path string) {
		t.Helper()
		o := Options{Artifact: Choice{Ref: filepath.Join(folder, "none.medusa")}, Library: library, Argv: []string{"/bin/sh", "-c", engine},
			Weights: []string{path}, Stdout: io.Discard, Stderr: log}
		if _, err := Run(context.Background(), o); err != nil {
			t.Fatal(err)
		}
	}
	run(weights)
	if got := <-most; got != size {
		t.Errorf("at most %d bytes of the weights were resident", got)
	}
	if strings.Contains(logged(), "read weights") {
		t.Error(logged())
	}
	run(filepath.Join(folder, "none"))
	if !strings.Contains(logged(), "medusa: read weights: ") || !strings.Contains(logged(), "no such file") {
		t.Error(logged())
	}
}
