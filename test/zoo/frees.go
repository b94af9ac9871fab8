package main

import (
	"fmt"
	"os"

	"medusa/internal/cuda"
)

// freesVary has the order of frees depend on the process, as the order of addresses does.
const freesVary = "varies"

// freeTogether allocates three times and frees all with no allocation in between, in this order (such as "201").
func freeTogether(order string) error {
	if order == "" {
		return nil
	}
	if order == freesVary {
		order = []string{"012", "021", "102", "120", "201", "210"}[os.Getpid()%6]
	}
	var made [3]cuda.DevicePtr
	for i := range made {
		var err error
		if made[i], err = cuda.MemAlloc(uint64(i+1) << 21); err != nil {
			return err
		}
	}
	for _, i := range order {
		if i < '0' || i > '2' {
			return fmt.Errorf("read ZOO_FREES=%s: not an order of 012", order)
		}
		if err := made[i-'0'].Free(); err != nil {
			return err
		}
	}
	return nil
}
