// Package coldfile makes files that only the disk has, and counts the bytes of a file that are in the page cache.
package coldfile

import (
	"errors"
	"os"
	"path/filepath"
	"testing"
	"time"
	"unsafe"

	"golang.org/x/sys/unix"
)

// Folder makes a folder on the disk that the sources are on: the folder for temporary files may be in memory, where everything is resident.
func Folder(t testing.TB) string {
	t.Helper()
	folder, err := os.MkdirTemp(".", "testdata-")
	if err == nil {
		t.Cleanup(func() { _ = os.RemoveAll(folder) })
		folder, err = filepath.Abs(folder)
	}
	if err != nil {
		t.Fatal(err)
	}
	return folder
}

// Make writes a file, and has the kernel forget its pages.
func Make(t testing.TB, name string, size int) string {
	t.Helper()
	if err := errors.Join(os.MkdirAll(filepath.Dir(name), 0o755), os.WriteFile(name, make([]byte, size), 0o600)); err != nil {
		t.Fatal(err)
	}
	f, err := os.Open(name)
	if err != nil {
		t.Fatal(err)
	}
	defer f.Close()
	if err := f.Sync(); err != nil {
		t.Fatal(err)
	}
	// The kernel keeps pages that a processor has just handled.
	for end := time.Now().Add(10 * time.Second); ; time.Sleep(time.Millisecond) {
		if err := unix.Fadvise(int(f.Fd()), 0, 0, unix.FADV_DONTNEED); err != nil {
			t.Fatal(err)
		}
		if Resident(t, name) == 0 {
			return name
		}
		if time.Now().After(end) {
			t.Fatalf("pages of %s stay resident", name)
		}
	}
}

// Resident counts the bytes of a file's pages in the page cache (mincore).
func Resident(t testing.TB, name string) (bytes int) {
	t.Helper()
	f, err := os.Open(name)
	if err != nil {
		t.Fatal(err)
	}
	defer f.Close()
	info, err := f.Stat()
	if err != nil {
		t.Fatal(err)
	}
	data, err := unix.Mmap(int(f.Fd()), 0, int(info.Size()), unix.PROT_READ, unix.MAP_SHARED)
	if err != nil {
		t.Fatal(err)
	}
	defer func() { _ = unix.Munmap(data) }()
	page := os.Getpagesize()
	seen := make([]byte, (len(data)+page-1)/page)
	if _, _, errno := unix.Syscall(unix.SYS_MINCORE, uintptr(unsafe.Pointer(&data[0])), uintptr(len(data)), uintptr(unsafe.Pointer(&seen[0]))); errno != 0 {
		t.Fatal(errno)
	}
	for _, p := range seen {
		bytes += page * int(p&1)
	}
	return bytes
}
