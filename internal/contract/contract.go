// Package contract is what the processes of one start tell each other: the medusa command, the interposer, the engine's process and
// its plug-ins. contract.spec has it once, and every language's side is generated from there.
//
// In: an environment. Out: what a start is told ([ReadStart]), and the variables that tell it ([Start], [Interposer]); the structs
// and numbers of interpose/preload/medusa.h and cmd/libmedusa/libmedusa.h, held to the same sizes and offsets by three compilers.
// Fails: on a value that a variable cannot have, naming the variable.
package contract

import (
	"os"
	"slices"
	"strings"
)

//go:generate go run ./gen

// prefix is what the names of all variables begin with, and of those of later versions.
const prefix = "MEDUSA_"

// Inherited returns what an engine inherits of this process's environment. Of Medusa's own variables most say what a single run
// is to do, and only the command itself says that: a server that inherited EnvCheckOut would serve nothing.
func Inherited() []string {
	return slices.DeleteFunc(os.Environ(), func(kv string) bool {
		name, _, _ := strings.Cut(kv, "=")
		// mutant: variables of single runs
		return strings.HasPrefix(name, prefix) && !slices.Contains(inherited, name)
	})
}
