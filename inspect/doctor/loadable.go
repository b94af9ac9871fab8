package doctor

import (
	"debug/elf"
	"fmt"
	"runtime"
	"syscall"
)

// loadable returns the reason why the dynamic linker would refuse a library. The linker prints the reason only in a line
// that engines swallow.
func loadable(path string) error {
	f, err := elf.Open(path)
	if err != nil {
		return fmt.Errorf("open library: %w", err)
	}
	defer f.Close()
	want := map[string]elf.Machine{"amd64": elf.EM_X86_64, "arm64": elf.EM_AARCH64}[runtime.GOARCH]
	if f.Machine != want {
		return fmt.Errorf("library is for %s, this machine is %s", f.Machine, runtime.GOARCH)
	}
	var fs syscall.Statfs_t
	if err := syscall.Statfs(path, &fs); err != nil {
		return fmt.Errorf("examine file system: %w", err)
	}
	return mountable(fs.Flags)
}

// noExec is ST_NOEXEC of statfs(2).
const noExec = 0x8

// mountable checks the flags of the library's file system.
func mountable(flags int64) error {
	if flags&noExec != 0 {
		return fmt.Errorf("the library's file system is mounted noexec, as Kubernetes image volumes are (copy it elsewhere with medusa install)")
	}
	return nil
}
