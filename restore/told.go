package restore

import (
	"fmt"
	"strings"
	"time"

	"medusa/artifacts"
	"medusa/internal/contract"
)

// tell writes the one line about a restored start: users see no other sign of it. A native start has its own line. One rank speaks for all.
func (s *Session) tell() {
	if s.env.Run != contract.RunRestore || s.env.rank.index != 0 {
		return
	}
	var own time.Duration
	for _, d := range s.journal.timings {
		own += d
	}
	digits := 0
	if own < 10*time.Millisecond {
		digits = 1
	}
	s.journal.say("restored %d graphs in %.*f ms%s", len(s.source.spec().Graphs), digits, milliseconds(own), skipped(s.source.artifact.Stages))
}

// skipped says what the native start that made the artifact did, and this one did not.
func skipped(stages []artifacts.StageTimes) string {
	var names []string
	var seconds float64
	for _, times := range stages {
		for _, stage := range times.Stages {
			if times.Mode != "native" || stage.Name != "profile" && stage.Name != "capture" {
				continue
			}
			names = append(names, stage.Name)
			seconds += stage.Seconds
		}
	}
	if len(names) == 0 {
		return ""
	}
	return fmt.Sprintf(" (%s skipped: %.1f s when made)", strings.Join(names, " and "), seconds)
}
