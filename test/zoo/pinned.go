package main

import (
	"os"

	"medusa/internal/cuda"
)

// pin makes page-locked memory before the i-th weight, as an allocator for copies does if its blocks are in use: how says how often before
// each weight ("102"), or is "varies", which is another number in each process.
func pin(how string, i int) error {
	count := 0
	switch {
	case how == "varies":
		count = (os.Getpid() >> i) % 3
	case i < len(how):
		count = int(how[i] - '0')
	}
	for range count {
		if _, err := cuda.MemHostAlloc(24, 0); err != nil {
			return err
		}
	}
	return nil
}
