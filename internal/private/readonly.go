package private

import (
	"bufio"
	"os"
	"slices"
	"strconv"
	"strings"

	"golang.org/x/sys/unix"
)

// readOnly says whether the file system that has path is read-only, so that no user can write to it anywhere. The flags of the mount at path
// do not tell: a file system can be mounted read-only here and writable elsewhere (mount --bind).
var readOnly = func(path string) bool {
	var st unix.Statx_t
	if unix.Statx(unix.AT_FDCWD, path, unix.AT_SYMLINK_NOFOLLOW, unix.STATX_MNT_ID, &st) != nil || st.Mask&unix.STATX_MNT_ID == 0 {
		return false // Linux before 5.8
	}
	mounts, err := os.Open("/proc/self/mountinfo")
	if err != nil {
		return false
	}
	defer mounts.Close()
	for lines := bufio.NewScanner(mounts); lines.Scan(); {
		// ID PARENT DEVICE ROOT PLACE OPTIONS [FIELDS] - TYPE SOURCE OPTIONS: the last ones are the file system's own (proc_pid_mountinfo(5)).
		mount, own, _ := strings.Cut(lines.Text(), " - ")
		id, _, _ := strings.Cut(mount, " ")
		if fields := strings.Fields(own); id == strconv.FormatUint(st.Mnt_id, 10) && len(fields) == 3 {
			// mutant: a file system that is writable elsewhere
			return slices.Contains(strings.Split(fields[2], ","), "ro")
		}
	}
	return false
}
