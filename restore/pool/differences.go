package pool

import (
	"bytes"
	"fmt"
	"maps"
	"os"
	"slices"
	"strings"
	"syscall"

	"golang.org/x/sys/unix"

	"medusa/internal/contract"
)

// Difference is a property in which a start from the pool would differ from a cold start.
type Difference struct{ What, Pool, Start string }

func (d Difference) String() string {
	if d.Pool == "" && d.Start == "" {
		return d.What
	}
	return fmt.Sprintf("%s (pool: %s, start: %s)", d.What, shown(d.Pool), shown(d.Start))
}

// mostShown is the length of a value in a message.
const mostShown = 80

func shown(s string) string {
	if len(s) > mostShown {
		s = s[:mostShown] + "..."
	}
	return fmt.Sprintf("%q", s)
}

// Variables that the loader, the C library, the interpreter or a library reads before a program's first line, or by C code. A recording of
// Python's reads does not show these. Other variables count if imports have read them.
var (
	keyPrefixes = []string{"LD_", "MALLOC_", "GLIBC_", "OMP_", "GOMP_", "KMP_", "MKL_", "OPENBLAS_", "GOTO_", "BLIS_", "PYTHON", "LC_", "PYTORCH_", "TORCH_", "C10_"}
	keyNames    = []string{"LANG", "LANGUAGE", "LOCPATH", "TZ", "TZDIR", "HOME",
		contract.EnvMode, contract.EnvGapSeed, contract.EnvExact, contract.EnvAtReady, contract.EnvAtIdentity}
	// A shell sets these for each of its commands. They count only if imports read one by name, not if they read the whole environment.
	shellNames = []string{"_", "SHLVL", "PWD", "OLDPWD"}
)

func inKey(name string) bool {
	return slices.Contains(keyNames, name) || slices.ContainsFunc(keyPrefixes, func(p string) bool { return strings.HasPrefix(name, p) })
}

// start is a request, with the properties of its process.
type start struct {
	program     *program
	arguments   []string // sys.argv when modules are imported
	environment map[string]string
	descriptors []int
	spawned     bool
	like        *process
}

// keyDifferences compares a start with the command and the environment of an engine's processes.
func (e *Engine) keyDifferences(s *start) (out []Difference) {
	if s.program.Interpreter != e.program.Interpreter {
		out = append(out, Difference{"interpreter", e.program.Interpreter, s.program.Interpreter})
	}
	if !s.spawned && !slices.Equal(s.program.Options, e.program.Options) {
		out = append(out, Difference{"options of the interpreter", strings.Join(e.program.Options, " "), strings.Join(s.program.Options, " ")})
	}
	names := map[string]bool{}
	for _, env := range []map[string]string{e.environment, s.environment} {
		for name := range env {
			// mutant: variables of the key
			if inKey(name) {
				names[name] = true
			}
		}
	}
	for _, name := range slices.Sorted(maps.Keys(names)) {
		out = append(out, variable(name, "", e.environment, s.environment)...)
	}
	return out
}

func variable(name, why string, have, want map[string]string) []Difference {
	a, isA := have[name]
	b, isB := want[name]
	if a == b && isA == isB {
		return nil
	}
	unset := func(v string, is bool) string {
		if !is {
			return "(unset)"
		}
		return v
	}
	return []Difference{{"variable " + name + why, unset(a, isA), unset(b, isB)}}
}

// factDifferences compares a start with the facts on which the imports of a process depended.
func (e *Engine) factDifferences(f *facts, s *start) (out []Difference) {
	if s.spawned && !slices.Equal(s.program.Options, f.Options) {
		out = append(out, Difference{"options of the interpreter", strings.Join(f.Options, " "), strings.Join(s.program.Options, " ")})
	}
	const why = ", which imports read"
	for _, name := range slices.Sorted(maps.Keys(f.Reads)) {
		have := map[string]string{}
		if v := f.Reads[name]; v != nil {
			have[name] = string(*v)
		}
		// mutant: variables that were recorded
		if !inKey(name) {
			out = append(out, variable(name, why, have, s.environment)...)
		}
	}
	if f.Whole {
		names := maps.Clone(e.environment)
		maps.Copy(names, s.environment)
		for _, name := range slices.Sorted(maps.Keys(names)) {
			_, read := f.Reads[name]
			// mutant: the whole environment
			if !read && !inKey(name) && !contract.Own(name) && !slices.Contains(shellNames, name) && !slices.Contains(e.Free, name) {
				out = append(out, variable(name, ", as imports read the whole environment", e.environment, s.environment)...)
			}
		}
	}
	// mutant: arguments that imports read
	if f.Arguments && !slices.Equal(s.arguments, e.program.sysArgv()) {
		out = append(out, Difference{"arguments, which imports read", strings.Join(e.program.sysArgv(), " "), strings.Join(s.arguments, " ")})
	}
	if name := shadowed(s.place(), f.Names); name != "" {
		out = append(out, Difference{What: "module " + name + ", which " + s.place() + " has too"})
	}
	for _, fd := range s.descriptors {
		if slices.Contains(f.Descriptors, fd) {
			out = append(out, Difference{What: fmt.Sprintf("descriptor %d, which imports have opened", fd)})
		}
	}
	return append(out, changed(f.Files)...)
}

func (s *start) place() string {
	if !s.spawned {
		return s.program.place(s.like.folder)
	}
	return (&program{Argv: s.arguments}).place(s.like.folder)
}

// processDifferences compares the properties that a start inherits with those of a waiting process.
func processDifferences(f *facts, have, want *process) (out []Difference) {
	for i, p := range have.fixed {
		// mutant: properties that no process can change
		if want.fixed[i].value != p.value {
			out = append(out, Difference{p.name, p.value, want.fixed[i].value})
		}
	}
	if f.Folder && (have.folder != want.folder || !os.SameFile(have.folderI, want.folderI)) {
		out = append(out, Difference{"working folder, for which imports ask", have.folder, want.folder})
	}
	if f.Threads > 1 && have.mask != want.mask {
		out = append(out, Difference{"signal mask, as imports have started threads", fmt.Sprintf("%#x", have.mask), fmt.Sprintf("%#x", want.mask)})
	}
	for i := range have.limits {
		a, b := have.limits[i], want.limits[i]
		stack := i == unix.RLIMIT_STACK && a.Cur != b.Cur // decides the place of memory, before main
		// mutant: limits that cannot be raised
		if stack || b.Max > a.Max && !have.can(capSysResource) {
			out = append(out, Difference{fmt.Sprintf("limit %d", i), fmt.Sprint(a.Cur, "/", a.Max), fmt.Sprint(b.Cur, "/", b.Max)})
		}
	}
	if want.nice < have.nice && !have.canNice(want.nice) {
		out = append(out, Difference{"nice", fmt.Sprint(have.nice), fmt.Sprint(want.nice)})
	}
	if want.oom < have.oom && !have.can(capSysResource) {
		out = append(out, Difference{"oom_score_adj", fmt.Sprint(have.oom), fmt.Sprint(want.oom)})
	}
	return out
}

// canNice reports whether the process may take this niceness, which is lower than its own.
func (p *process) canNice(nice int) bool {
	return p.can(capSysNice) || uint64(20-nice) <= p.limits[unix.RLIMIT_NICE].Cur
}

// stamp identifies the version of a file that was read.
type stamp struct {
	Path  string `json:"path"`
	Mtime int64  `json:"mtime"`
	Ctime int64  `json:"ctime"`
	Size  int64  `json:"size"`
	Inode uint64 `json:"inode"`
}

// changed names the first file that has changed since it was read.
func changed(stamps []stamp) []Difference {
	for _, s := range stamps {
		var st syscall.Stat_t
		// mutant: files that have changed since
		if err := syscall.Stat(s.Path, &st); err != nil || st.Mtim.Nano() != s.Mtime || st.Ctim.Nano() != s.Ctime || st.Size != s.Size || st.Ino != s.Inode {
			return []Difference{{What: "file " + s.Path + ", which has changed since it was imported"}}
		}
	}
	return nil
}

func sysStat(info os.FileInfo) (*syscall.Stat_t, bool) {
	st, ok := info.Sys().(*syscall.Stat_t)
	return st, ok
}

// environ reads variables. If a name is there twice, the first one counts, as in the C library.
func environ(pairs [][]byte) map[string]string {
	out := map[string]string{}
	for _, kv := range pairs {
		name, value, found := bytes.Cut(kv, []byte("="))
		if _, twice := out[string(name)]; found && !twice {
			out[string(name)] = string(value)
		}
	}
	return out
}
