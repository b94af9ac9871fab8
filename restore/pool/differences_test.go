package pool

import (
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"time"

	"golang.org/x/sys/unix"
)

// sample is an engine, the facts of its imports, and a start without differences.
func sample(t *testing.T) (*Engine, *facts, *start) {
	t.Helper()
	dir := t.TempDir()
	file := filepath.Join(dir, "module.py")
	if err := os.WriteFile(file, []byte("x"), 0o644); err != nil {
		t.Fatal(err)
	}
	info, err := os.Stat(file)
	if err != nil {
		t.Fatal(err)
	}
	st, _ := sysStat(info)
	self, err := readProcess(os.Getpid())
	if err != nil {
		t.Fatal(err)
	}
	script := filepath.Join(dir, "programs", "serve.py")
	p := &program{Interpreter: "/usr/bin/python3", Options: []string{"-u"}, Argv: []string{script, "model"}}
	env := map[string]string{"OMP_NUM_THREADS": "4", "READ": "1", "OTHER": "2"}
	like := *self
	one := []byte("1")
	e := &Engine{Name: "e", Free: []string{"FREE"}, program: p, environment: env}
	f := &facts{
		Reads: map[string]*[]byte{"READ": &one, "ABSENT": nil}, Threads: 1, Names: []string{"module"}, Descriptors: []int{6},
		Files: []stamp{{Path: file, Mtime: st.Mtim.Nano(), Ctime: st.Ctim.Nano(), Size: st.Size, Inode: st.Ino}},
	}
	copied := *p
	s := &start{program: &copied, arguments: p.sysArgv(), descriptors: []int{0, 1, 2, 7}, like: &like,
		environment: map[string]string{"OMP_NUM_THREADS": "4", "READ": "1", "OTHER": "3", "_": "x", "MEDUSA_STATUS": "s", "FREE": "f"}}
	return e, f, s
}

func all(e *Engine, f *facts, s *start) string {
	have, err := readProcess(os.Getpid())
	if err != nil {
		return err.Error()
	}
	list := append(e.keyDifferences(s), e.factDifferences(f, s)...)
	return strings.Join(texts(append(list, processDifferences(f, have, s.like)...)), ", ")
}

// Each row changes one property.
func TestDifferences(t *testing.T) {
	for _, row := range []struct {
		name   string
		change func(t *testing.T, e *Engine, f *facts, s *start)
		want   string // in the only difference; empty: none
	}{
		{"nothing", func(*testing.T, *Engine, *facts, *start) {}, ""},
		{"interpreter", func(_ *testing.T, _ *Engine, _ *facts, s *start) { s.program.Interpreter = "/usr/bin/python4" }, `interpreter (pool: "/usr/bin/python3", start: "/usr/bin/python4")`},
		{"options", func(_ *testing.T, _ *Engine, _ *facts, s *start) { s.program.Options = nil }, "options of the interpreter"},
		{"options of a spawned process", func(_ *testing.T, _ *Engine, _ *facts, s *start) { s.spawned = true }, "options of the interpreter"},
		{"key", func(_ *testing.T, _ *Engine, _ *facts, s *start) { s.environment["OMP_NUM_THREADS"] = "5" }, `variable OMP_NUM_THREADS (pool: "4", start: "5")`},
		{"key of the start alone", func(_ *testing.T, _ *Engine, _ *facts, s *start) { s.environment["PYTHONHASHSEED"] = "5" }, `variable PYTHONHASHSEED (pool: "(unset)", start: "5")`},
		{"key of the pool alone", func(_ *testing.T, _ *Engine, _ *facts, s *start) { delete(s.environment, "OMP_NUM_THREADS") }, "variable OMP_NUM_THREADS"},
		{"key of Medusa", func(_ *testing.T, _ *Engine, _ *facts, s *start) { s.environment["MEDUSA_EXACT"] = "1:2" }, "variable MEDUSA_EXACT"},
		{"read", func(_ *testing.T, _ *Engine, _ *facts, s *start) { s.environment["READ"] = "2" }, `variable READ, which imports read (pool: "1", start: "2")`},
		{"read and absent", func(_ *testing.T, _ *Engine, _ *facts, s *start) { s.environment["ABSENT"] = "" }, "variable ABSENT, which imports read"},
		{"whole environment", func(_ *testing.T, e *Engine, f *facts, _ *start) { f.Whole = true }, "variable OTHER, as imports read the whole environment"},
		{"whole environment, free", func(_ *testing.T, e *Engine, f *facts, _ *start) { f.Whole, e.Free = true, []string{"OTHER", "FREE"} }, ""},
		{"free but read", func(_ *testing.T, e *Engine, f *facts, s *start) {
			f.Whole, e.Free, s.environment["READ"] = true, []string{"OTHER", "FREE", "READ"}, "2"
		}, "variable READ"},
		{"arguments", func(_ *testing.T, _ *Engine, _ *facts, s *start) { s.arguments = []string{"x"} }, ""},
		{"arguments that imports read", func(_ *testing.T, _ *Engine, f *facts, s *start) { f.Arguments, s.arguments = true, []string{"x"} }, "arguments, which imports read"},
		{"folder", func(_ *testing.T, _ *Engine, _ *facts, s *start) { s.like.folder = "/elsewhere" }, ""},
		{"folder that imports asked for", func(_ *testing.T, _ *Engine, f *facts, s *start) { f.Folder, s.like.folder = true, "/elsewhere" }, "working folder"},
		{"module of the program's place", func(t *testing.T, _ *Engine, f *facts, s *start) {
			s.program.Argv = []string{filepath.Join(filepath.Dir(f.Files[0].Path), "serve.py")}
		}, "module module, which"},
		{"descriptor", func(_ *testing.T, _ *Engine, _ *facts, s *start) { s.descriptors = append(s.descriptors, 6) }, "descriptor 6"},
		{"file that has changed", func(t *testing.T, _ *Engine, f *facts, _ *start) {
			if err := os.Chtimes(f.Files[0].Path, time.Now(), time.Unix(1, 0)); err != nil {
				t.Fatal(err)
			}
		}, "which has changed since it was imported"},
		{"file that is gone", func(t *testing.T, _ *Engine, f *facts, _ *start) { _ = os.Remove(f.Files[0].Path) }, "which has changed since it was imported"},
		{"cgroup", func(_ *testing.T, _ *Engine, _ *facts, s *start) { s.like.fixed = other(s.like.fixed, "cgroup") }, "cgroup"},
		{"namespace", func(_ *testing.T, _ *Engine, _ *facts, s *start) { s.like.fixed = other(s.like.fixed, "net namespace") }, "net namespace"},
		{"user", func(_ *testing.T, _ *Engine, _ *facts, s *start) { s.like.fixed = other(s.like.fixed, "Uid") }, "Uid"},
		{"processors", func(_ *testing.T, _ *Engine, _ *facts, s *start) { s.like.fixed = other(s.like.fixed, "Cpus_allowed") }, "Cpus_allowed"},
		{"umask", func(_ *testing.T, _ *Engine, _ *facts, s *start) { s.like.umask ^= 0o77 }, ""},
		{"mask", func(_ *testing.T, _ *Engine, _ *facts, s *start) { s.like.mask ^= 2 }, ""},
		{"mask of threads", func(_ *testing.T, _ *Engine, f *facts, s *start) { f.Threads, s.like.mask = 2, s.like.mask^2 }, "signal mask"},
		{"soft limit", func(_ *testing.T, _ *Engine, _ *facts, s *start) { s.like.limits[unix.RLIMIT_NOFILE].Cur-- }, ""},
		{"stack", func(_ *testing.T, _ *Engine, _ *facts, s *start) { s.like.limits[unix.RLIMIT_STACK].Cur-- }, "limit 3"},
	} {
		t.Run(row.name, func(t *testing.T) {
			e, f, s := sample(t)
			row.change(t, e, f, s)
			got := all(e, f, s)
			if row.want == "" && got != "" || !strings.Contains(got, row.want) || strings.Contains(got, ", variable") {
				t.Errorf("got %q, want %q", got, row.want)
			}
		})
	}
}

func other(list []property, name string) []property {
	list = append([]property{}, list...)
	for i := range list {
		if list[i].name == name {
			list[i].value += "x"
		}
	}
	return list
}

// A process without privileges takes no limit above its own, no better priority, and no lower OOM score.
func TestWithoutPrivileges(t *testing.T) {
	_, f, s := sample(t)
	have := *s.like
	have.caps, have.limits[unix.RLIMIT_NOFILE].Max, have.limits[unix.RLIMIT_NICE].Cur = 0, 100, 0
	want := have
	want.limits[unix.RLIMIT_NOFILE].Max, want.nice, want.oom = 101, have.nice-1, have.oom-1
	if got := strings.Join(texts(processDifferences(f, &have, &want)), ", "); !strings.Contains(got, "limit 7") || !strings.Contains(got, "nice") || !strings.Contains(got, "oom_score_adj") {
		t.Errorf("got %q", got)
	}
	have.caps = 1<<capSysNice | 1<<capSysResource
	if got := processDifferences(f, &have, &want); len(got) > 0 {
		t.Errorf("with privileges: got %v", got)
	}
}

// Signals that make may leave ignored in its children, SIGHUP, and the first and the last of the real-time
// signals.
func TestSignals(t *testing.T) {
	if got, want := signals(1<<31|1<<32|1|1<<33|1<<63), []int{1, 34, 64}; !slices.Equal(got, want) {
		t.Errorf("got %v, want %v", got, want)
	}
}
