package main

import (
	"github.com/spf13/cobra"

	"medusa/restore/supervisor"
)

// artifactArgs has the commands whose first arguments are artifacts, and how many.
var artifactArgs = map[string]int{"inspect": 1, "report": 1, "verify": 1, "restore": 1, "push": 1, "diff": 2, "bench": 1, "doctor": 1 << 20}

// takeCached lets these commands take an artifact of the cache by its digest or a name. restore chooses by itself.
func takeCached(root *cobra.Command) {
	for _, c := range root.Commands() {
		n, run := artifactArgs[c.Name()], c.RunE
		if n == 0 || c.Name() == "restore" {
			continue
		}
		c.RunE = func(cmd *cobra.Command, args []string) error {
			own, _ := splitCommand(cmd, args)
			for i := range own[:min(n, len(own))] {
				path, release, err := supervisor.File(own[i])
				if err != nil && cmd.Name() == "diff" {
					err = trouble{err}
				}
				if err != nil {
					return err
				}
				defer release()
				args[i] = path
			}
			return run(cmd, args)
		}
	}
}
