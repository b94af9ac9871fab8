package main

import (
	"runtime/debug"
	"strings"
	"testing"
)

func TestVersionOfBuildInfo(t *testing.T) {
	v := versionOf(&debug.BuildInfo{Main: debug.Module{Version: "v1.2.3"},
		Settings: []debug.BuildSetting{{Key: "vcs.revision", Value: "abc"}, {Key: "vcs.modified", Value: "true"}}})
	var out strings.Builder
	if err := v.write(&out); err != nil {
		t.Fatal(err)
	}
	for _, want := range []string{"v1.2.3\n", "abc, modified\n", "artifact 2, graph 3, trace "} {
		if !strings.Contains(out.String(), want) {
			t.Errorf("no %q in\n%s", want, out.String())
		}
	}
	if v := versionOf(nil); v.Medusa != "(devel)" || v.Commit != "" {
		t.Errorf("without build information: %+v", v)
	}
}
