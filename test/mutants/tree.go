package main

import (
	"context"
	"errors"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"syscall"
)

// trees are one worker's copies of the repository: one of them has programs and libraries.
type trees struct{ small, built *tree }

func newTrees(in *inputs) (*trees, error) {
	dir, err := os.MkdirTemp("", "mutants-")
	if err != nil {
		return nil, err
	}
	return &trees{&tree{in: in, dir: filepath.Join(dir, "small")}, &tree{in: in, dir: filepath.Join(dir, "built"), built: true}}, nil
}

func (t *trees) remove() error { return os.RemoveAll(filepath.Dir(t.small.dir)) }

// of returns the tree with the files of a scope.
func (t *trees) of(ctx context.Context, s *scope) (*tree, error) {
	if s.built {
		return t.built, t.built.become(ctx, s.files)
	}
	return t.small, t.small.become(ctx, s.files)
}

// tree is a copy of some of the files.
type tree struct {
	in    *inputs
	dir   string
	has   map[string]bool
	built bool
}

// become leaves exactly these of the repository's files in the tree. Built files stay.
func (t *tree) become(ctx context.Context, names []string) error {
	fresh := t.has == nil
	wanted := map[string]bool{}
	for _, name := range names {
		wanted[name] = true
		if t.has[name] {
			continue
		}
		f, to := t.in.files[name], filepath.Join(t.dir, name)
		if err := os.MkdirAll(filepath.Dir(to), 0o755); err != nil {
			return err
		}
		if err := os.WriteFile(to, f.data, f.mode); err != nil {
			return err
		}
	}
	for name := range t.has {
		if !wanted[name] {
			if err := os.Remove(filepath.Join(t.dir, name)); err != nil {
				return err
			}
		}
	}
	t.has = wanted
	if fresh && t.built {
		return t.build(ctx)
	}
	return nil
}

// build makes the programs that tests of whole processes use. In the tree without programs, go test builds
// the packages of its test.
func (t *tree) build(ctx context.Context) error {
	if !t.built {
		return nil
	}
	if out, err := command(ctx, t.dir, "make", "-s", "lib", "bin", "zoo", "programs-engine").CombinedOutput(); err != nil {
		return fmt.Errorf("build: %w\n%s", err, out)
	}
	return nil
}

// with calls f while a file has other contents.
func (t *tree) with(name string, data []byte, f func() (verdict, error)) (v verdict, err error) {
	to := filepath.Join(t.dir, name)
	if err := os.WriteFile(to, data, 0o644); err != nil {
		return broken, err
	}
	defer func() { err = errors.Join(err, os.WriteFile(to, t.in.files[name].data, 0o644)) }()
	return f()
}

// command is one that ends with all its children if this process does.
func command(ctx context.Context, dir, name string, args ...string) *exec.Cmd {
	cmd := exec.CommandContext(ctx, name, args...)
	cmd.Dir = dir
	cmd.Env = append(os.Environ(), "MAKEFLAGS=", "CGO_ENABLED=0", "PYTHONDONTWRITEBYTECODE=1")
	cmd.SysProcAttr = &syscall.SysProcAttr{Setpgid: true}
	cmd.Cancel = func() error { return syscall.Kill(-cmd.Process.Pid, syscall.SIGKILL) }
	return cmd
}
