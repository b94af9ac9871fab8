package main

import (
	"bytes"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"strings"
	"testing"

	"medusa/test/testenv"
)

// The committed PTX of the simulated GPU's stand-ins equals the compiled sources, if the compiler is at hand.
func TestPTXOfStandInsIsCurrent(t *testing.T) {
	clang, err := exec.LookPath("clang++-19")
	if err != nil {
		testenv.Skip(t, testenv.Clang)
	}
	rules, err := os.ReadFile("../../runners/reference/rules.mk")
	if err != nil {
		t.Fatal(err)
	}
	flags := regexp.MustCompile(`(?m)^PTX_FLAGS = (.*) -I\S+$`).FindSubmatch(rules)
	if flags == nil {
		t.Fatal("rules.mk has no PTX_FLAGS that end in a folder")
	}
	const kernels = "../../simgpu/standins/kernels"
	sources, err := filepath.Glob(kernels + "/*.cu")
	if err != nil || len(sources) != 2 {
		t.Fatalf("found sources %v (%v)", sources, err)
	}
	for _, source := range sources {
		args := append(strings.Fields(string(flags[1])), "-I"+kernels, "-o", "-", source)
		got, err := exec.Command(clang, args...).Output()
		if err != nil {
			t.Fatalf("compile %s: %v", source, err)
		}
		want, err := os.ReadFile(strings.TrimSuffix(source, ".cu") + ".ptx")
		if err != nil {
			t.Fatal(err)
		}
		if !bytes.Equal(got, want) {
			t.Errorf("%s: the committed PTX is not what it compiles to (run make standins-ptx)", source)
		}
	}
}
