package supervisor

import (
	"fmt"
	"os"
	"path/filepath"
	"strconv"
	"strings"

	"medusa/internal/contract"
	"medusa/restore/status"
)

// endedEarly returns why an engine of several ranks that has ended is to be started once more, natively: it failed before each of its ranks had said how
// its start went, and none had started natively. A native start that fails would fail again. The statuses of this start are gone then.
func (d *desk) endedEarly(code int) error {
	if code == 0 || d.status == "" || d.meeting == "" {
		return nil
	}
	ranks, come, ready := 0, 0, 0
	files, _ := filepath.Glob(filepath.Join(d.meeting, contract.RankFile("*")))
	for _, file := range files {
		data, err := os.ReadFile(file)
		if err != nil {
			continue
		}
		if n, err := strconv.Atoi(strings.TrimSpace(string(data))); err == nil {
			ranks, come = max(ranks, n), come+1
		}
	}
	var written []string
	for rank := range ranks {
		path := status.OneOf(d.status, rank)
		st, err := status.Read(path)
		if err != nil {
			continue
		}
		if st.Status == status.Native {
			return nil
		}
		written, ready = append(written, path), ready+1
	}
	if ready == ranks {
		return nil
	}
	for _, path := range written {
		_ = os.Remove(path)
	}
	return fmt.Errorf("the engine ended with exit status %d before its %d ranks were ready (%d of them had begun to restore, %d were ready)", code, ranks, come, ready)
}
