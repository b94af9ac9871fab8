package main

import (
	"bytes"
	"errors"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"time"
)

// fullDisk gives servers a disk that is full, or that fills up. It returns how many cases were run: a disk of its own needs a kernel that lets
// this user mount one.
func (r *run) fullDisk() (cases int, err error) {
	if err := r.noRoomForTheLog(); err != nil {
		return 0, fmt.Errorf("no byte of the log: %w", err)
	}
	if exec.Command("unshare", "-rm", "mount", "-t", "tmpfs", "none", r.disk()).Run() != nil {
		return 1, nil
	}
	if err := r.diskFills(); err != nil {
		return 0, fmt.Errorf("a disk that fills up: %w", err)
	}
	if err := r.noRoomForTheState(); err != nil {
		return 0, fmt.Errorf("no room for the state folder: %w", err)
	}
	return 3, nil
}

// disk is the folder on which small disks are mounted.
func (r *run) disk() string {
	path := filepath.Join(r.work, "disk")
	_ = os.MkdirAll(path, 0o700) // mounting fails then
	return path
}

// oneStub is a file with a model.
func (r *run) oneStub(state string) string {
	return fmt.Sprintf("listen: 127.0.0.1:0\ngpus: ['0']\n%smodels:\n- {name: m0, command: [%q, --listen, '127.0.0.1:{port}', --model, '{name}']}\n", state, r.stub())
}

// onDisk is a command that runs `medusa serve` with a small disk of its own, on which are its state and its log.
func (r *run) onDisk(options string) []string {
	return []string{"unshare", "-rm", "/bin/sh", "-c", `mount -t tmpfs -o "$1" none "$2" && exec "$3" serve "$4" --decisions "$2/decisions.jsonl"`,
		"sh", options, r.disk(), filepath.Join(r.build, "medusa"), r.config()}
}

// noRoomForTheLog has a log that takes no byte. The server says so, and answers.
func (r *run) noRoomForTheLog() error {
	if err := os.WriteFile(r.config(), []byte(r.oneStub("")), 0o600); err != nil {
		return err
	}
	s, err := r.start(filepath.Join(r.build, "medusa"), "serve", r.config(), "--decisions", "/dev/full")
	if err != nil {
		return err
	}
	for i := range 5 {
		if err := echoed(s.url, "m0", fmt.Sprint(i), i%2 == 0); err != nil {
			return errors.Join(err, s.kill())
		}
	}
	if !strings.Contains(s.output(), "no space left") {
		return errors.Join(fmt.Errorf("it does not say so\n%s", s.output()), s.kill())
	}
	return s.kill()
}

// diskFills has the log fill the disk. The server says so and answers all requests, and the log on the disk replays.
func (r *run) diskFills() error {
	if err := os.WriteFile(r.config(), []byte(r.oneStub("state: disk/state\n")), 0o600); err != nil {
		return err
	}
	s, err := r.start(r.onDisk("size=64k,nr_inodes=8")...)
	if err != nil {
		return err
	}
	const more = 20
	after := 0
	for end := time.Now().Add(patience); after < more && time.Now().Before(end); {
		if err := echoed(s.url, "m0", fmt.Sprint(after), after%2 == 0); err != nil {
			return errors.Join(err, s.kill())
		}
		if strings.Contains(s.output(), "no space left") {
			after++
		}
	}
	if after < more {
		return errors.Join(errors.New("it does not say so"), s.kill())
	}
	// The disk is the server's own: others see it through the server's process only.
	data, err := os.ReadFile(fmt.Sprintf("/proc/%d/root%s/decisions.jsonl", s.cmd.Process.Pid, r.disk()))
	if err := errors.Join(err, s.kill()); err != nil {
		return err
	}
	log := filepath.Join(r.work, "cut.jsonl")
	if err := os.WriteFile(log, data, 0o600); err != nil {
		return err
	}
	if out, err := r.replayed(log); err != nil || !bytes.Contains(out, []byte("identical")) {
		return fmt.Errorf("replay a log of %d bytes: %w\n%s", len(data), err, out)
	}
	return nil
}

// noRoomForTheState has a disk without room for another file. The server refuses to start, since it could not find engines that are left.
func (r *run) noRoomForTheState() error {
	if err := os.WriteFile(r.config(), []byte(r.oneStub("state: disk/state\n")), 0o600); err != nil {
		return err
	}
	argv := r.onDisk("nr_inodes=1")
	s, err := r.start(append(argv[:4], append([]string{`mount -t tmpfs -o "$1" none "$2" && exec "$3" serve "$4"`}, argv[5:]...)...)...)
	if err == nil {
		return errors.Join(errors.New("it starts"), s.kill())
	}
	if !strings.Contains(err.Error(), "open state folder") || !strings.Contains(err.Error(), "no space left") {
		return err
	}
	return nil
}
