package main

import (
	"archive/zip"
	"cmp"
	"errors"
	"fmt"
	"io/fs"
	"maps"
	"os"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"time"

	"medusa/interpose"
	"medusa/restore/status"
)

// small are the engine's options on the simulated GPU, on which every byte is touched by a processor.
var small = []string{"--layers", "1", "--vocabulary", "2000", "--max-length", "16"}

// torchEnv gives the interpreter the packages that come with the kit, unless it has them.
func (a *Attempt) torchEnv() ([]string, error) {
	list, err := os.ReadFile(a.path("wheels", "requirements.txt"))
	pinned := regexp.MustCompile(`(?m)^transformers==(\S+)`).FindSubmatch(list)
	if err != nil || pinned == nil {
		return nil, fmt.Errorf("the kit has no transformers: %v", err)
	}
	path := []string{a.path("lib", "python")}
	check := fmt.Sprintf("import transformers; assert transformers.__version__ == '%s'", pinned[1])
	if _, err := a.run(nil, a.Python, "-c", check); err != nil {
		site := filepath.Join(a.Work, "site")
		if err := unpack(a.path("wheels"), site); err != nil {
			return nil, err
		}
		path = append(path, site)
	}
	env := []string{"PYTHONPATH=" + strings.Join(path, ":"), "TRITON_CACHE_DIR=" + filepath.Join(a.Work, "triton"),
		"TORCHINDUCTOR_CACHE_DIR=" + filepath.Join(a.Work, "inductor")} // its default asks for the user's name, which containers may lack
	if a.simulated() {
		env = append(env, "TRITON_LIBCUDA_PATH="+a.path("simulated"))
	}
	out, err := a.run(env, a.Python, "-c", check+"; import torch; print(torch.__version__, torch.cuda.get_device_name(0))")
	a.row("torch", "%s", strings.TrimSpace(out))
	return env, err
}

// unpack lays the wheels out as an installation would: none of them has scripts or data that the engine needs. A file that
// several wheels have is the last one's.
func unpack(wheels, site string) error {
	files, err := filepath.Glob(filepath.Join(wheels, "*.whl"))
	if err == nil && len(files) == 0 {
		err = fmt.Errorf("no wheels in %s", wheels)
	}
	if err != nil {
		return err
	}
	if err := os.RemoveAll(site); err != nil {
		return err
	}
	for _, file := range files {
		if err := unpackWheel(file, site); err != nil {
			return fmt.Errorf("%s: %w", filepath.Base(file), err)
		}
	}
	return nil
}

func unpackWheel(file, site string) error {
	z, err := zip.OpenReader(file)
	if err != nil {
		return err
	}
	defer z.Close()
	return fs.WalkDir(z, ".", func(name string, d fs.DirEntry, err error) error {
		to := filepath.Join(site, filepath.FromSlash(name))
		if err != nil || d.IsDir() {
			return errors.Join(err, os.MkdirAll(to, 0o755))
		}
		data, err := fs.ReadFile(z, name)
		if err == nil {
			err = os.WriteFile(to, data, 0o644)
		}
		return err
	})
}

func torchRecorded(a *Attempt) error {
	env, err := a.torchEnv()
	if err != nil {
		return err
	}
	path := filepath.Join(a.Work, "torch.trace")
	os.Remove(path)
	out, err := a.run(append(env, "LD_PRELOAD="+a.path("lib", interpose.LibraryName), "MEDUSA_MODE=record", "MEDUSA_TRACE="+path),
		a.Python, a.path("engine", "recorded.py"))
	told := answers(a, out)
	if err != nil {
		return err
	}
	return errors.Join(told, recorded(a, path))
}

func (k *Kit) qwen() []string {
	engine := []string{k.Python, k.path("engine", "engine.py"), "--preset", "qwen3-0.6b", "--batch-sizes", "1,8,32", "--tokens", "4"}
	return append(engine, sized(k, nil, small)...)
}

func (k *Kit) artifact(name string) string { return filepath.Join(k.Work, name+".medusa") }

func torchMaterialized(a *Attempt) error {
	env, err := a.torchEnv()
	if err != nil {
		return err
	}
	return a.materialize(env, "qwen3-0.6b", a.qwen()...)
}

// materialize keeps the traces of its runs in the work folder, also if it fails or takes too long.
func (a *Attempt) materialize(env []string, name string, engine ...string) error {
	traces := filepath.Join(a.Work, "traces", name)
	if err := errors.Join(os.RemoveAll(traces), os.RemoveAll(a.artifact(name)), os.MkdirAll(filepath.Dir(traces), 0o755)); err != nil {
		return err
	}
	began := time.Now()
	out, err := a.run(env, append([]string{a.path("medusa"), "materialize", "-o", a.artifact(name), "--keep-traces", traces, "--"}, engine...)...)
	a.row(name+" materialized", "%.1f s", time.Since(began).Seconds())
	for line := range strings.Lines(out) {
		if text := strings.TrimSpace(line); text != "" {
			a.row("", "%s", text)
		}
	}
	a.keptTraces(traces)
	return err
}

// torchRestored starts the engine natively and restored in turns, at the recorded addresses and at others.
func torchRestored(a *Attempt) error {
	env, err := a.torchEnv()
	if err != nil {
		return err
	}
	if _, err := os.Stat(a.artifact("qwen3-0.6b")); err != nil {
		return fmt.Errorf("make step 6 first: %w", err)
	}
	var native start
	for i := range sized(a.Kit, 3, 1) {
		began := time.Now()
		out, err := a.run(env, a.qwen()...)
		var s start
		if err == nil {
			s, err = parseStart(out)
		}
		if err != nil {
			return err
		}
		a.row(fmt.Sprintf("native %d", i+1), "%.2f s, %d graphs", time.Since(began).Seconds(), s.Graphs)
		if i == 0 {
			native = s
		} else if err := sameOutputs(s, native); err != nil {
			return fmt.Errorf("two native starts: %w", err)
		}
		for _, addresses := range []string{"exact", "relocate"} {
			if err := a.restoreOnce(env, addresses, i+1, "full", native); err != nil {
				a.explain(env, addresses, i+1, native)
				return fmt.Errorf("restored start %d, addresses %s: %w", i+1, addresses, err)
			}
		}
	}
	return nil
}

// explain adds facts about a restored start that failed: whether it fails without a check, too, and the result of verification.
func (a *Attempt) explain(env []string, addresses string, number int, native start) {
	a.row("the same without a check", "error %v", a.restoreOnce(env, addresses, number, "none", native))
	out, code, err := a.exit(env, append([]string{"sh", "-c", `exec "$@" 2>&1`, "sh", a.path("medusa"), "verify", a.artifact("qwen3-0.6b"), "--"}, a.qwen()...)...)
	a.row("medusa verify", "exit code %d, error %v: %s", code, err, lastLine(out))
}

func (a *Attempt) restoreOnce(env []string, addresses string, number int, check string, native start) error {
	path := filepath.Join(a.Work, "status.json")
	os.Remove(path)
	began := time.Now()
	out, err := a.run(env, append([]string{a.path("medusa"), "restore", "--strict", "--check=" + check, "--addresses=" + addresses, "--status", path,
		a.artifact("qwen3-0.6b"), "--"}, a.qwen()...)...)
	took := time.Since(began).Seconds()
	if err != nil {
		return err
	}
	s, err := parseStart(out)
	if err != nil {
		return err
	}
	said, err := status.Read(path)
	if err != nil {
		return err
	}
	a.row(fmt.Sprintf("%s %d", addresses, number), "%.2f s, %d graphs, addresses %s; %s", took, s.Graphs, said.Addresses, spans(said))
	switch {
	case s.Start != "restored":
		return fmt.Errorf("it started %s", s.Start)
	case s.Graphs != native.Graphs || s.Graphs == 0:
		return fmt.Errorf("%d graphs, natively %d", s.Graphs, native.Graphs)
	case addresses == "exact" && said.Addresses != "exact":
		return fmt.Errorf("addresses are %s", said.Addresses)
	case a.simulated(): // torch's kernels are no-ops there: outputs are old contents of memory
		return nil
	}
	return sameOutputs(s, native)
}

// spans says how long Medusa's own steps took, the longest first.
func spans(s *status.Status) string {
	names := slices.SortedFunc(maps.Keys(s.Spans), func(x, y string) int { return cmp.Compare(s.Spans[y], s.Spans[x]) })
	text := fmt.Sprintf("%.1f ms of Medusa's own", s.Milliseconds)
	for _, name := range names[:min(5, len(names))] {
		text += fmt.Sprintf(", %s %.1f", name, s.Spans[name])
	}
	return text
}

func torchShapes(a *Attempt) error {
	env, err := a.torchEnv()
	if err != nil {
		return err
	}
	size := sized(a.Kit, "", ":layers=1:vocabulary=2000:batch-sizes=1,2")
	traces := filepath.Join(a.Work, "traces", "shapes")
	argv := []string{a.Python, a.path("engine", "measure.py"), filepath.Join(a.Work, "logs", "shapes"), "--bundle", a.Root, "--python", a.Python,
		"--budget", "540", "--traces", traces}
	argv = append(argv, sized(a.Kit, []string{"--rounds", "2"}, []string{"--rounds", "1", "--replays", "2", "--tokens", "2"})...)
	for _, shape := range []string{"llama2-7b", "qwen3-0.6b", "falcon-7b"} {
		argv = append(argv, "--shape", shape+sized(a.Kit, ":max-length=64", ":max-length=16")+size)
	}
	out, err := a.run(env, argv...)
	for line := range strings.Lines(out) {
		if name, said, ok := strings.Cut(strings.TrimSpace(line), ": "); ok && name != "gpu-torch" {
			a.row(name, "%s", said)
		}
	}
	last := lastLine(out)
	a.row("measure.py", "%s", last)
	a.keptTraces(traces)
	if err == nil && !strings.HasPrefix(last, "gpu-torch: PASS") {
		err = fmt.Errorf("measure.py: the last line is %q", last)
	}
	return err
}

// keptTraces names the files for a look at a run that failed or took too long.
func (a *Attempt) keptTraces(dir string) {
	files, bytes := 0, int64(0)
	err := filepath.WalkDir(dir, func(_ string, d fs.DirEntry, err error) error {
		if err != nil || !d.Type().IsRegular() {
			return err
		}
		info, err := d.Info()
		if err == nil {
			files, bytes = files+1, bytes+info.Size()
		}
		return err
	})
	if err != nil {
		a.row("traces kept", "none: %v", err)
		return
	}
	a.row("traces kept", "%d files of %d MiB in %s", files, bytes>>20, dir)
}

// Graphs whose work differs from one to the next, so many in a process that templates, streams and pools mix; graphs that are hard
// to verify; and the time of the driver itself.
func torchPrograms(a *Attempt) error {
	env, err := a.torchEnv()
	if err != nil {
		return err
	}
	return errors.Join(a.floor(), a.programsInTorch(env), a.hard(env))
}

func (a *Attempt) programsInTorch(env []string) error {
	engine := []string{a.Python, a.path("engine", "programs.py"), "--programs", fmt.Sprint(sized(a.Kit, 100, 10)), "--seed", "1"}
	if err := a.materialize(env, "torch-programs", engine...); err != nil {
		return err
	}
	_, err := a.run(env, append([]string{a.path("medusa"), "restore", "--strict", "--check=full", a.artifact("torch-programs"), "--"}, engine...)...)
	a.row("restored, every graph checked", "%v", err == nil)
	return err
}
