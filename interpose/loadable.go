package interpose

import (
	"bufio"
	"bytes"
	"context"
	"debug/elf"
	"errors"
	"fmt"
	"io"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"syscall"
	"time"

	"golang.org/x/sys/unix"
)

// separators are the characters at which the dynamic linker splits LD_PRELOAD, and the one with which it begins a name to replace
// (ld.so(8)). Python splits PYTHONPATH at colons.
const separators = " :$"

// CheckPlace refuses a path of the interposer of which the dynamic linker would take a part for the path of another library. That library may
// be anybody's.
func CheckPlace(path string) error {
	abs, err := filepath.Abs(path)
	// mutant: the interposer's path is one word
	if err == nil && strings.ContainsAny(abs, separators) {
		err = fmt.Errorf("preload %q: its path has a space, a colon or a dollar sign, which mean something to the dynamic linker (move Medusa to a path without them)", abs)
	}
	return err
}

// trialLimit bounds the time for one trial. It takes milliseconds.
const trialLimit = 10 * time.Second

// maxInterpreters bounds the scripts that are each other's interpreter. Linux has a limit of 5.
const maxInterpreters = 5

// Unloadable returns why the process of a command cannot have the library in LD_PRELOAD, or nil if nothing is known against it, and whether the
// process ends for that reason. It reads the program, and lets the program's dynamic linker load both without running the program.
func Unloadable(command, library string) (why error, fatal bool) {
	path, err := exec.LookPath(command)
	for range maxInterpreters {
		if err != nil {
			return nil, false // the start says so
		}
		interpreter := scriptOf(path)
		if interpreter == "" {
			return try(path, library)
		}
		path, err = exec.LookPath(interpreter)
	}
	return nil, false
}

// scriptOf returns the interpreter of a script, or "".
func scriptOf(path string) string {
	f, err := os.Open(path)
	if err != nil {
		return ""
	}
	defer f.Close()
	line, _ := bufio.NewReader(io.LimitReader(f, 4096)).ReadString('\n')
	words := strings.Fields(strings.TrimPrefix(line, "#!"))
	if !strings.HasPrefix(line, "#!") || len(words) == 0 {
		return ""
	}
	if filepath.Base(words[0]) == "env" && len(words) > 1 && !strings.HasPrefix(words[1], "-") {
		return words[1]
	}
	return words[0]
}

func try(path, library string) (why error, fatal bool) {
	program, err := elf.Open(path)
	if err != nil {
		return nil, false
	}
	defer program.Close()
	own, err := elf.Open(library)
	if err != nil {
		return fmt.Errorf("read interposer: %w", err), false
	}
	defer own.Close()
	interpreter := ""
	for _, p := range program.Progs {
		if p.Type == elf.PT_INTERP {
			text, _ := io.ReadAll(io.LimitReader(p.Open(), 4096))
			interpreter = string(bytes.TrimRight(text, "\x00"))
		}
	}
	switch {
	case program.Class != own.Class || program.Machine != own.Machine:
		return fmt.Errorf("%s is a program for %v (%v), the interposer is for %v (%v)", path, program.Machine, program.Class, own.Machine, own.Class), false
	case interpreter == "":
		return fmt.Errorf("%s is statically linked and loads no library", path), false
	case gainsPrivileges(path):
		return fmt.Errorf("%s gains privileges when it starts, and then loads no library that its user chose", path), false
	}
	return load(interpreter, path, library)
}

// gainsPrivileges says whether the kernel tells the dynamic linker to take no orders from the environment.
func gainsPrivileges(path string) bool {
	info, err := os.Stat(path)
	if err != nil {
		return false
	}
	st, ok := info.Sys().(*syscall.Stat_t)
	if !ok {
		return false
	}
	n, err := unix.Getxattr(path, "security.capability", nil)
	return info.Mode()&os.ModeSetuid != 0 && int(st.Uid) != os.Getuid() || info.Mode()&os.ModeSetgid != 0 && int(st.Gid) != os.Getgid() ||
		err == nil && n > 0 && os.Getuid() != 0
}

// load lets the dynamic linker list the libraries of the program, which both that of glibc and that of musl can. They report what they cannot load.
func load(interpreter, path, library string) (why error, fatal bool) {
	list := func(preload string) (first string, err error) {
		ctx, stop := context.WithTimeout(context.Background(), trialLimit)
		defer stop()
		var said bytes.Buffer
		cmd := exec.CommandContext(ctx, interpreter, "--list", path)
		cmd.Env, cmd.Stderr = []string{"LD_PRELOAD=" + preload, "LD_LIBRARY_PATH=" + os.Getenv("LD_LIBRARY_PATH")}, &said
		err = cmd.Run()
		first, _, _ = strings.Cut(strings.TrimSpace(said.String()), "\n")
		return first, err
	}
	first, err := list(library)
	var failed *exec.ExitError
	if first == "" && !errors.As(err, &failed) {
		return nil, false
	}
	// mutant: libraries that a program lacks anyway
	if without, err := list(""); err != nil && without == first { // such as those that the program's launcher finds
		return nil, false
	}
	if first == "" {
		first = err.Error()
	}
	why = fmt.Errorf("%s cannot load the interposer into %s: %s", interpreter, path, first)
	return why, !strings.HasSuffix(first, "ignored.") // as glibc says of a library without which it goes on
}
