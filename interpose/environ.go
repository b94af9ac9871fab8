package interpose

import (
	"os"
	"slices"
	"strings"
)

// passedOn lists the variables of Medusa that an engine may have from the environment of the medusa command. Every other one says
// what a single run is to do, and only the command itself says that: a server with an inherited MEDUSA_CHECK_OUT would serve
// nothing.
var passedOn = []string{
	"MEDUSA_BEGAN",
	"MEDUSA_CACHE",
	"MEDUSA_CACHE_LIMIT",
	"MEDUSA_LIB",
	"MEDUSA_OFF",
	"MEDUSA_RANK",
	"MEDUSA_RENDEZVOUS",
	"MEDUSA_SESSION_LIB",
	"MEDUSA_TRUST",
	"MEDUSA_VLLM_PLACES",
	"MEDUSA_WORLD_SIZE",
}

// Inherited returns what an engine inherits of this process's environment.
func Inherited() []string {
	return slices.DeleteFunc(os.Environ(), func(kv string) bool {
		name, _, _ := strings.Cut(kv, "=")
		return strings.HasPrefix(name, "MEDUSA_") && !slices.Contains(passedOn, name)
	})
}
