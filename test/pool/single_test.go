package main

import (
	"bytes"
	"encoding/json"
	"errors"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"

	"medusa/test/testenv"
)

// single runs medusa restore with the file of a pool, and returns the engine's exit code and the output.
func single(t *testing.T, command []string, patience string, more ...string) (code int, said string) {
	t.Helper()
	build, dir := testenv.Path(t, "build"), t.TempDir()
	modules := filepath.Join(dir, "modules")
	if err := os.Mkdir(modules, 0o755); err != nil {
		t.Fatal(err)
	}
	for from, to := range map[string]string{"spawner.py": filepath.Join(dir, "spawner.py"), "slow_module.py": filepath.Join(modules, "slow_module.py"),
		"early_module.py": filepath.Join(modules, "early_module.py")} {
		data, err := os.ReadFile(from)
		if err == nil {
			err = os.WriteFile(to, data, 0o644)
		}
		if err != nil {
			t.Fatal(err)
		}
	}
	out, err := exec.Command("python3", "-c", "import sys; print(sys.executable)").Output()
	if err != nil {
		t.Fatal(err)
	}
	python := strings.TrimSpace(string(out)) // not a shim, which starts another program
	if command == nil {
		command = []string{python, "spawner.py"}
	}
	text, err := json.Marshal(map[string]any{"socket": "elsewhere/socket", "engines": []map[string]any{
		{"name": "core", "command": command, "modules": []string{"slow_module"}, "spawned": true},
		{"name": "server", "command": command, "modules": []string{"early_module"}, "folder": modules},
	}})
	if err == nil {
		err = os.WriteFile(filepath.Join(dir, "pool.yaml"), text, 0o644)
	}
	if err != nil {
		t.Fatal(err)
	}
	cmd := exec.Command(filepath.Join(build, "medusa"), "restore", "--pool", "pool.yaml", "--auto", "--", python, "spawner.py")
	cmd.Dir = dir
	cmd.Env = append([]string{"PATH=" + os.Getenv("PATH"), "PYTHONCOERCECLOCALE=0", "HOME=" + dir, "MEDUSA_CACHE=" + filepath.Join(dir, "cache"), "TMPDIR=" + dir,
		"PYTHONPATH=" + modules, "MEDUSA_LIB=" + filepath.Join(build, "lib"), "NEWS=" + dir, "PATIENCE=" + patience}, more...)
	var stdin *os.File
	if stdin, err = os.Open(os.DevNull); err != nil {
		t.Fatal(err)
	}
	defer stdin.Close()
	printed, err := os.Create(filepath.Join(dir, "printed"))
	if err != nil {
		t.Fatal(err)
	}
	defer printed.Close()
	cmd.Stdin, cmd.Stdout, cmd.Stderr = stdin, printed, printed
	err = cmd.Run()
	var exit *exec.ExitError
	if err != nil && !errors.As(err, &exit) {
		t.Fatal(err)
	}
	data, err := os.ReadFile(printed.Name())
	if err != nil {
		t.Fatal(err)
	}
	if left, _ := filepath.Glob(filepath.Join(dir, "medusa-run-*")); len(left) > 0 {
		t.Errorf("left: %v", left)
	}
	return cmd.ProcessState.ExitCode(), string(bytes.TrimSpace(data))
}

func prepare(t *testing.T) {
	t.Helper()
	if _, err := exec.LookPath("python3"); err != nil {
		testenv.Skip(t, testenv.Python)
	}
	testenv.Build(t, "lib", "bin", "build/lib/python")
}

// With the file of a pool, the command's process and the one that it spawns import side by side in the start's folder. Requests wait until both have
// imported.
func TestSingle(t *testing.T) {
	prepare(t)
	if code, said := single(t, nil, "30"); code != 0 || strings.Contains(said, "cold start") {
		t.Errorf("exit code %d: %s", code, said)
	}
}

// If a pool is impossible, the start is a cold one that says why.
func TestSingleCold(t *testing.T) {
	prepare(t)
	code, said := single(t, []string{"/bin/sh", "-c", "true"}, "0.1", "NEVER_POOLED=1")
	if code != 3 || !strings.Contains(said, "cold start: make pool of") {
		t.Errorf("another command: exit code %d: %s", code, said)
	}
	code, said = single(t, nil, "30", "FAILS=1")
	if code == 0 || !strings.Contains(said, "cold start of a spawned process") || !strings.Contains(said, "as the test asks") {
		t.Errorf("imports that fail: exit code %d: %s", code, said)
	}
}
