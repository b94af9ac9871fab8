package restore

import (
	"os"
	"time"

	"golang.org/x/sys/unix"
)

// notice wakes a rank if a file appears in a folder. A rank that looked again and again would take processor time from those that it waits for.
type notice struct {
	folder *os.File // the kernel's queue of events; nil: there is none
}

// lookAgain bounds a wait: a file of another machine wakes nobody, and nor does one whose writer died before it was to write.
const lookAgain = 50 * time.Millisecond

func noticeIn(folder string) notice {
	fd, err := unix.InotifyInit1(unix.IN_CLOEXEC | unix.IN_NONBLOCK)
	if err != nil {
		return notice{}
	}
	if _, err := unix.InotifyAddWatch(fd, folder, unix.IN_CREATE); err != nil {
		_ = unix.Close(fd)
		return notice{}
	}
	return notice{os.NewFile(uintptr(fd), folder)}
}

// wait returns once a file has appeared, or after a while.
func (n notice) wait(most time.Duration) {
	most = min(most, lookAgain)
	var events [4096]byte
	// mutant: a rank wakes at a decision
	if n.folder == nil || n.folder.SetReadDeadline(time.Now().Add(most)) != nil {
		time.Sleep(most)
		return
	}
	_, _ = n.folder.Read(events[:])
}

func (n notice) close() {
	if n.folder != nil {
		_ = n.folder.Close()
	}
}
