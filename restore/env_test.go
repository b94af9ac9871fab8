package restore

import (
	"strings"
	"testing"
)

func TestReadEnvironment(t *testing.T) {
	for _, row := range []struct {
		vars      string
		want      Run
		verifying bool
		err       string
	}{
		{"", None, false, ""},
		{"MEDUSA_CHECK_OUT=o MEDUSA_STATUS=s", None, false, ""},
		{"MEDUSA_RUN=profile", Profile, false, ""},
		{"MEDUSA_RUN=record MEDUSA_KV_BYTES=12 MEDUSA_CHECK_OUT=o", Record, false, ""},
		{"MEDUSA_RUN=record MEDUSA_KV_BYTES=x", None, false, "MEDUSA_KV_BYTES"},
		{"MEDUSA_RUN=restore", None, false, "needs MEDUSA_ARTIFACT"},
		{"MEDUSA_RUN=restore MEDUSA_ARTIFACT=a", Restore, false, ""},
		{"MEDUSA_RUN=restore MEDUSA_ARTIFACT=a MEDUSA_CHECK_OUT=o", Restore, false, ""},
		{"MEDUSA_RUN=check-native", None, false, "needs MEDUSA_CHECK_OUT"},
		{"MEDUSA_RUN=check-native MEDUSA_CHECK_OUT=o", None, false, "needs MEDUSA_CHECK_PLAN"},
		{"MEDUSA_RUN=check-native MEDUSA_CHECK_OUT=o MEDUSA_ARTIFACT=a", None, false, "needs MEDUSA_CHECK_PLAN"},
		{"MEDUSA_RUN=check-native MEDUSA_CHECK_OUT=o MEDUSA_CHECK_PLAN=a", Check, true, ""},
		{"MEDUSA_RUN=check-native MEDUSA_CHECK_OUT=o MEDUSA_CHECK_PLAN=a MEDUSA_ARTIFACT=a", Check, true, ""},
		{"MEDUSA_RUN=check-restored MEDUSA_ARTIFACT=a", None, false, "needs MEDUSA_CHECK_OUT"},
		{"MEDUSA_RUN=check-restored MEDUSA_CHECK_OUT=o MEDUSA_CHECK_PLAN=a", None, false, "needs MEDUSA_ARTIFACT"},
		{"MEDUSA_RUN=check-restored MEDUSA_CHECK_OUT=o MEDUSA_ARTIFACT=a", Restore, true, ""},
		{"MEDUSA_RUN=check MEDUSA_CHECK_OUT=o MEDUSA_ARTIFACT=a", None, false, `"check" is none of`},
		{"MEDUSA_RUN=restore MEDUSA_ARTIFACT=a MEDUSA_RELAX=driver.version,dso.*", Restore, false, ""},
		{"MEDUSA_RUN=restore MEDUSA_ARTIFACT=a MEDUSA_RELAX=gpu.name", None, false, "MEDUSA_RELAX: relax gpu.name"},
		{"MEDUSA_BEGAN=x", None, false, "MEDUSA_BEGAN"},
		{"MEDUSA_ENGINES=2 MEDUSA_ENGINE=1", None, false, ""},
		{"MEDUSA_ENGINES=2 MEDUSA_ENGINE=2", None, false, "MEDUSA_ENGINE: engine 2 of 2"},
		{"MEDUSA_RUN=other", None, false, `"other" is none of`},
	} {
		for _, name := range strings.Fields("MEDUSA_RUN MEDUSA_KV_BYTES MEDUSA_ARTIFACT MEDUSA_CHECK_OUT MEDUSA_CHECK_PLAN MEDUSA_SELFTEST_OUT MEDUSA_STRICT MEDUSA_STATUS MEDUSA_RELAX MEDUSA_BEGAN MEDUSA_ENGINES MEDUSA_ENGINE") {
			t.Setenv(name, "")
		}
		for _, v := range strings.Fields(row.vars) {
			name, value, _ := strings.Cut(v, "=")
			t.Setenv(name, value)
		}
		env, err := readEnvironment()
		if row.err != "" {
			if err == nil || !strings.Contains(err.Error(), row.err) {
				t.Errorf("%q: got %v, want an error with %q", row.vars, err, row.err)
			}
			continue
		}
		if err != nil || env.run != row.want || env.verifying() != row.verifying {
			t.Errorf("%q: run %v, verifying %v, error %v; want %v, %v", row.vars, env.run, env.verifying(), err, row.want, row.verifying)
		}
	}
}
