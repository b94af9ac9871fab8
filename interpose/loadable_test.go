package interpose

import (
	"bytes"
	"debug/elf"
	"encoding/binary"
	"errors"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"

	"medusa/test/testenv"
)

// A path that the dynamic linker or Python would split is refused: part of it could name somebody else's library.
func TestPathsThatAreSplit(t *testing.T) {
	for _, name := range []string{"a b", "a:b", "a$LIB", "$ORIGIN"} {
		dir := filepath.Join(t.TempDir(), name)
		lib := filepath.Join(dir, LibraryName)
		if err := errors.Join(os.Mkdir(dir, 0o755), os.WriteFile(lib, nil, 0o600)); err != nil {
			t.Fatal(err)
		}
		t.Setenv("MEDUSA_LIB", dir)
		if got, err := FindLibrary(); err == nil || !strings.Contains(err.Error(), "move Medusa") {
			t.Errorf("%s: found %q, %v", name, got, err)
		}
		for _, path := range []string{lib, LibraryName} {
			t.Chdir(dir) // the path can be relative
			if cmd, err := Command(t.Context(), Config{Library: path, Mode: Replay}, []string{"true"}); err == nil || !strings.Contains(err.Error(), "move Medusa") {
				t.Errorf("%s: %v, %v", name, cmd, err)
			}
		}
	}
}

// compile makes a program or a library of one line of C.
func compile(t *testing.T, text, out string, flags ...string) string {
	t.Helper()
	cmd := exec.Command("cc", append(append([]string{"-x", "c", "-", "-x", "none", "-o", out}, flags...), "-w")...)
	cmd.Stdin = strings.NewReader(text)
	if said, err := cmd.CombinedOutput(); err != nil {
		t.Fatalf("%v\n%s", err, said)
	}
	return out
}

// Programs into which the dynamic linker loads no interposer are named with the reason.
func TestUnloadable(t *testing.T) {
	dir := t.TempDir()
	in := func(name string) string { return filepath.Join(dir, name) }
	library := compile(t, "int x;", in("lib.so"), "-shared", "-fPIC")
	// A library that needs a version of another one which is not there, as one for a newer glibc does.
	if err := os.WriteFile(in("v2"), []byte("V2 { global: v; };"), 0o600); err != nil {
		t.Fatal(err)
	}
	if err := os.WriteFile(in("v1"), []byte("V1 { global: v; };"), 0o600); err != nil {
		t.Fatal(err)
	}
	versioned := func(script string) string {
		return compile(t, "int v(void) { return 1; }", in("libv.so"), "-shared", "-fPIC", "-Wl,--version-script="+in(script), "-Wl,-soname,libv.so")
	}
	newer := compile(t, "int v(void); int u(void) { return v(); }", in("newer.so"), "-shared", "-fPIC", versioned("v2"), "-Wl,-rpath,"+dir)
	versioned("v1")
	// A dynamic linker that knows a symbol less, as that of musl: it says so, and ends with 127.
	other := compile(t, `#include <stdlib.h>
		#include <unistd.h>
		int main(void) { if (!*getenv("LD_PRELOAD")) return 0; write(2, "Error relocating: backtrace: symbol not found\n", 46); _exit(127); }`, in("ld-other.so"), "-static")
	gone := compile(t, "int w(void) { return 0; }", in("libgone.so"), "-shared", "-fPIC")
	lacking := compile(t, "int w(void); int main(void) { return w(); }", in("lacking"), gone)
	if err := os.Remove(gone); err != nil {
		t.Fatal(err)
	}
	own := compile(t, "int main(void) { return 0; }", in("own"))
	static := compile(t, "int main(void) { return 0; }", in("static"), "-static")
	musl := compile(t, "int main(void) { return 0; }", in("musl"), "-Wl,--dynamic-linker="+other)
	var narrow bytes.Buffer
	header := elf.Header32{Type: uint16(elf.ET_EXEC), Machine: uint16(elf.EM_386), Version: 1, Ehsize: 52}
	copy(header.Ident[:], "\x7fELF\x01\x01\x01")
	if err := binary.Write(&narrow, binary.LittleEndian, header); err != nil {
		t.Fatal(err)
	}
	for name, text := range map[string]string{"narrow": narrow.String(), "script": "#!" + static + " -x\n", "found": "#! /usr/bin/env static\n", "text": "no program"} {
		if err := os.WriteFile(in(name), []byte(text), 0o755); err != nil {
			t.Fatal(err)
		}
	}
	t.Setenv("PATH", dir+":"+os.Getenv("PATH"))
	for _, row := range []struct {
		command, library, want string
		fatal                  bool
	}{
		{own, library, "", false},
		{"true", library, "", false},
		{lacking, library, "", false}, // with the interposer or without it
		{"text", library, "", false},
		{"missing", library, "", false},
		{static, library, "static is statically linked and loads no library", false},
		{"script", library, "static is statically linked", false},
		{"found", library, "static is statically linked", false},
		{"narrow", library, "narrow is a program for EM_386 (ELFCLASS32)", false},
		{own, newer, "version `V2' not found", true},
		{musl, library, "Error relocating: backtrace: symbol not found", true},
		{own, in("text"), "read interposer", false},
	} {
		if err, fatal := Unloadable(row.command, row.library); fatal != row.fatal || row.want == "" && err != nil || row.want != "" && (err == nil || !strings.Contains(err.Error(), row.want)) {
			t.Errorf("%s with %s: %v (fatal %v), want %q", row.command, row.library, err, fatal, row.want)
		}
	}
	if os.Geteuid() != 0 {
		testenv.Skip(t, testenv.Superuser)
	}
	if err := errors.Join(os.Chown(own, 54321, 54321), os.Chmod(own, 0o755|os.ModeSetuid)); err != nil {
		t.Fatal(err)
	}
	if err, fatal := Unloadable(own, library); fatal || err == nil || !strings.Contains(err.Error(), "gains privileges") {
		t.Errorf("setuid: %v", err)
	}
}
