package main

import (
	"os"
	"regexp"
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
	for _, want := range []string{"v1.2.3\n", "abc, modified\n", "artifact 3, graph 3, trace "} {
		if !strings.Contains(out.String(), want) {
			t.Errorf("no %q in\n%s", want, out.String())
		}
	}
	for _, info := range []*debug.BuildInfo{nil, {}, {Main: debug.Module{Version: "(devel)"}},
		{Main: debug.Module{Version: "v0.0.0-20261122183341-0123456789ab"}}} {
		if v := versionOf(info); v.Medusa != "v0.2.0" || v.Commit != "" {
			t.Errorf("%+v: %+v", info, v)
		}
	}
}

// The source has a version, and the changelog has a section for it.
func TestReleaseIsInTheChangelog(t *testing.T) {
	text, err := os.ReadFile("../../CHANGELOG.md")
	if err != nil {
		t.Fatal(err)
	}
	if newest := regexp.MustCompile(`(?m)^## (v[0-9.]+)`).FindSubmatch(text); newest == nil || string(newest[1]) != release {
		t.Errorf("the newest version of the changelog is %q, the program's %s", newest, release)
	}
}
