package agent

import (
	"bytes"
	"fmt"
	"os"
	"path/filepath"
	"strconv"
	"time"

	"golang.org/x/sys/unix"

	"medusa/internal/contract"
	"medusa/internal/private"
)

// Home is the folder of a server's state. Every process of its engines has the folder's path in its environment, and keeps it if its
// parents end. So the next server with this folder finds engines that are left. Guards and the kernel end engines with their server,
// but some may remain. A file of process IDs would not do: an ID may belong to another process by then.
type Home struct {
	path string
	lock *os.File
}

// endLimit bounds the time that killed processes take to end.
const endLimit = 10 * time.Second

// OpenHome takes a folder for this process alone, makes it if it is missing, and ends the engines that an earlier server left. It
// returns their number.
func OpenHome(path string) (h *Home, left int, err error) {
	if path, err = filepath.Abs(path); err != nil {
		return nil, 0, err
	}
	if err := private.Folder(path); err != nil {
		return nil, 0, fmt.Errorf("open state folder: %w", err)
	}
	lock, err := os.OpenFile(filepath.Join(path, "lock"), os.O_CREATE|os.O_RDWR, 0o600)
	if err != nil {
		return nil, 0, fmt.Errorf("open state folder: %w", err)
	}
	if err := unix.Flock(int(lock.Fd()), unix.LOCK_EX|unix.LOCK_NB); err != nil {
		_ = lock.Close()
		return nil, 0, fmt.Errorf("open state folder %s: %w (another server uses it)", path, err)
	}
	h = &Home{path, lock}
	killed := map[int]bool{}
	for end := time.Now().Add(endLimit); ; time.Sleep(5 * time.Millisecond) {
		found, err := h.kill()
		if err != nil || len(found) == 0 {
			return h, len(killed), err
		}
		if time.Now().After(end) {
			_ = lock.Close()
			return nil, 0, fmt.Errorf("end engines of an earlier server: processes %v go on", found)
		}
		for _, pid := range found {
			killed[pid] = true
		}
	}
}

// Environ returns the environment variable that engines have.
func (h *Home) Environ() string { return contract.EnvServe + "=" + h.path }

// Close gives the folder to the next server.
func (h *Home) Close() error { return h.lock.Close() }

// kill sends SIGKILL to every process with the folder in its environment, and returns their IDs.
func (h *Home) kill() (found []int, err error) {
	entries, err := os.ReadDir("/proc")
	if err != nil {
		return nil, fmt.Errorf("look for engines of an earlier server: %w", err)
	}
	for _, e := range entries {
		pid, err := strconv.Atoi(e.Name())
		if err != nil || pid == os.Getpid() {
			continue
		}
		// The descriptor stays this process's if another process gets its ID later.
		fd, err := unix.PidfdOpen(pid, 0)
		if err != nil {
			continue
		}
		env, err := os.ReadFile(filepath.Join("/proc", e.Name(), "environ"))
		if err == nil && h.in(env) {
			// mutant: engines of an earlier server
			_ = unix.PidfdSendSignal(fd, unix.SIGKILL, nil, 0)
			found = append(found, pid)
		}
		_ = unix.Close(fd)
	}
	return found, nil
}

func (h *Home) in(env []byte) bool {
	for _, kv := range bytes.Split(env, []byte{0}) {
		if string(kv) == h.Environ() {
			return true
		}
	}
	return false
}
