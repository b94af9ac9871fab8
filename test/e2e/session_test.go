package e2e

import (
	"go/ast"
	"go/parser"
	"go/token"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"testing"

	"medusa/restore/status"
	"medusa/test/testenv"
)

// sessionEngine compiles an engine in C that goes through libmedusa.so.
func sessionEngine(t *testing.T) string { return sessionProgram(t, "session") }

// sessionProgram compiles a program of cmd/libmedusa/test.
func sessionProgram(t *testing.T, name string) string {
	t.Helper()
	testenv.Build(t, "lib", "bin", "build/lib/libmedusa.so")
	out := filepath.Join(t.TempDir(), name)
	lib := testenv.Path(t, "build", "lib")
	cc := exec.Command("cc", "-std=c11", "-D_GNU_SOURCE", "-O1", "-Wall", "-Wextra", "-Werror",
		"-I"+testenv.Path(t, "internal", "cuda", "include"), "-I"+testenv.Path(t, "build", "generated"), "-I"+testenv.Path(t, "interpose", "preload"),
		"-I"+testenv.Path(t, "interpose", "test"), "-I"+testenv.Path(t, "cmd", "libmedusa"), "-o", out,
		testenv.Path(t, "cmd", "libmedusa", "test", name+".c"), filepath.Join(lib, "libmedusa.so"),
		testenv.Path(t, "build", "simulated", "libcuda.so.1"), "-ldl", "-Wl,-rpath,"+lib)
	if text, err := cc.CombinedOutput(); err != nil {
		t.Fatalf("%v\n%s", err, text)
	}
	return out
}

// An engine in C is recorded and restored, asks before each launch, and does without restored graphs from the launch on
// before which they became invalid.
func TestSessionInC(t *testing.T) {
	engine := sessionEngine(t)
	path, art := materialized(t, engine)
	if len(art.Spec.Graphs) != 1 || len(art.Verification.Graphs) != 1 {
		t.Fatalf("%d graphs, %d verified", len(art.Spec.Graphs), len(art.Verification.Graphs))
	}
	native := strings.Fields(run(t, engine))
	for _, tt := range []struct {
		options []string
		ends    string
		how     string
		built   string // whether the graph was there before it was asked for
		reason  string
	}{
		{nil, "", "restored", "1", ""},
		{[]string{"--lazy"}, "", "restored", "0", ""},
		{[]string{"--addresses=relocate"}, "", "restored", "1", ""},
		{nil, "free", "captured", "1", "freed memory"},
		{nil, "invalidate", "captured", "1", "the engine sleeps"},
		{[]string{"--lazy"}, "invalidate", "captured", "0", "the engine sleeps"},
	} {
		args := append([]string{"restore"}, tt.options...)
		p := must(t, []string{"SESSION_ENDS=" + tt.ends}, "medusa", append(args, path, "--", engine)...)
		got := strings.Fields(p.stdout)
		if len(got) != 3 || got[0] != tt.how || got[1] != native[1] || got[2] != tt.built || !strings.Contains(p.stderr, tt.reason) {
			t.Errorf("%v %q: %q, want %s %s %s\n%s", tt.options, tt.ends, p.stdout, tt.how, native[1], tt.built, p.stderr)
		}
	}
}

// A panic of the library does not unwind into C: the engine starts natively, or captures anew if it served already.
func TestPanicsEndAtTheABI(t *testing.T) {
	engine := sessionEngine(t)
	path, _ := materialized(t, engine)
	native := strings.Fields(run(t, engine))
	for _, at := range []string{"kv_bytes", "workspace", "graphs", "note", "tensor", "kernels", "usable"} {
		file := filepath.Join(t.TempDir(), "status.json")
		p := must(t, []string{"SESSION_PANICS=" + at}, "medusa", "restore", "--status", file, path, "--", engine)
		got := strings.Fields(p.stdout)
		if len(got) != 3 || got[0] != "captured" || got[1] != native[1] || !strings.Contains(p.stderr, "medusa: native start: internal: panic in") {
			t.Errorf("%s: %q, want %s %s\n%s", at, p.stdout, "captured", native[1], p.stderr)
		}
		st, err := status.Read(file)
		if err != nil || at != "usable" && (st.Status != status.Native || st.Reason != "internal") {
			t.Errorf("%s: status %+v, %v", at, st, err)
		}
	}
}

// A function that is called as the header forbids returns MEDUSA_MISUSE, whatever it is and however it is wrong.
func TestMisuse(t *testing.T) {
	cmd := exec.Command(sessionProgram(t, "misuse"))
	cmd.Env = testenv.Simulated(t)
	out, err := cmd.CombinedOutput()
	if err != nil || strings.Contains(string(out), "wrong") {
		t.Errorf("%v\n%s", err, out)
	}
	header, err := os.ReadFile(testenv.Path(t, "cmd", "libmedusa", "libmedusa.h"))
	if err != nil {
		t.Fatal(err)
	}
	for _, f := range regexp.MustCompile(`(?m)^int (medusa_session_\w+)\(`).FindAllStringSubmatch(string(header), -1) {
		if !slices.Contains(strings.Fields(string(out)), f[1]) {
			t.Errorf("%s is not called", f[1])
		}
	}
}

// Every exported function is behind the boundary.
func TestExportedFunctionsAreGuarded(t *testing.T) {
	file, err := parser.ParseFile(token.NewFileSet(), testenv.Path(t, "cmd", "libmedusa", "main.go"), nil, parser.ParseComments)
	if err != nil {
		t.Fatal(err)
	}
	exported := 0
	for _, d := range file.Decls {
		f, ok := d.(*ast.FuncDecl)
		if !ok || !slices.Contains(comments(f.Doc), "//export "+f.Name.Name) {
			continue
		}
		exported++
		guarded := false
		switch first := f.Body.List[0].(type) {
		case *ast.ReturnStmt:
			guarded = calls(first.Results[0], "with")
		case *ast.AssignStmt:
			guarded = calls(first.Rhs[0], "with")
		case *ast.DeferStmt: // goSessionOpen: there is no session yet
			guarded = f.Name.Name == "goSessionOpen"
		}
		if !guarded {
			t.Errorf("%s does not begin with the boundary", f.Name.Name)
		}
	}
	if exported < 15 {
		t.Errorf("%d exported functions were found", exported)
	}
}

func comments(g *ast.CommentGroup) []string {
	var out []string
	if g != nil {
		for _, c := range g.List {
			out = append(out, c.Text)
		}
	}
	return out
}

func calls(e ast.Expr, name string) bool {
	call, ok := e.(*ast.CallExpr)
	if !ok {
		return false
	}
	f, ok := call.Fun.(*ast.Ident)
	return ok && f.Name == name
}

// run starts a program natively and returns its output.
func run(t *testing.T, program string) string {
	t.Helper()
	cmd := exec.Command(program)
	cmd.Env = testenv.Simulated(t)
	out, err := cmd.Output()
	if err != nil {
		t.Fatal(err)
	}
	return string(out)
}
