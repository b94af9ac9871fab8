package interpose

import (
	"os/exec"
	"runtime"
	"syscall"
)

// Run runs the command and waits for it. The kernel kills the command's process if this one is killed, so that nothing
// serves, or holds a GPU, that nobody watches any more. This covers that process alone: what it starts itself is its own to
// end, or the container's.
func Run(cmd *exec.Cmd) error {
	if cmd.SysProcAttr == nil {
		cmd.SysProcAttr = &syscall.SysProcAttr{}
	}
	cmd.SysProcAttr.Pdeathsig = syscall.SIGKILL
	// The signal comes when the thread ends that started the process: it stays this goroutine's until then.
	runtime.LockOSThread()
	defer runtime.UnlockOSThread()
	return cmd.Run()
}
