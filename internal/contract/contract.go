// Package contract is the contract between the processes of one start: the medusa command, the interposer, the engine's process
// and its plug-ins. contract.spec defines it once, and every language's side is generated from it.
//
// In: an environment. Out: the settings of a start ([ReadStart]) and the variables that carry them ([Start], [Interposer]); the
// structs and numbers of interpose/preload/medusa.h and cmd/libmedusa/libmedusa.h. Three compilers check the same sizes and
// offsets. Fails: if a variable has an invalid value; the error names the variable.
package contract

import (
	"os"
	"slices"
	"strings"
)

//go:generate go run ./gen

// prefix begins the names of all variables, also of later versions.
const prefix = "MEDUSA_"

// Own says whether a variable is one of Medusa's.
func Own(name string) bool { return strings.HasPrefix(name, prefix) }

// Inherited returns the part of this process's environment that an engine inherits. Most of Medusa's own variables control a
// single run, and only the command may set them: a server that inherited EnvCheckOut would exit without serving.
func Inherited() []string {
	return slices.DeleteFunc(os.Environ(), func(kv string) bool {
		name, _, _ := strings.Cut(kv, "=")
		// mutant: variables of single runs
		return Own(name) && !slices.Contains(inherited, name)
	})
}

// RankFile is the name of the file by which a rank tells the engine's starter, in the directory of MEDUSA_RENDEZVOUS, that the engine has several ranks.
// The file holds their number.
func RankFile(rank string) string { return "rank." + rank }
