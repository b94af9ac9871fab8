package restore

import (
	"errors"
	"fmt"
	"os"
	"strconv"
	"unsafe"

	"medusa/artifacts"
	"medusa/internal/contract"
	"medusa/internal/cuda"
)

var procRank = cuda.Process("medusa_rank")

// rank is which of the engine's worker processes this one is.
type rank struct{ index, count uint32 }

// readRank asks the interposer, which names traces by it: both have to go by the same variables.
func readRank() (rank, error) {
	r := rank{0, 1}
	if !procRank.Present() {
		return statedRank(), nil
	}
	code, err := procRank.Invoke(uintptr(unsafe.Pointer(&r.index)), uintptr(unsafe.Pointer(&r.count)))
	if err == nil && int32(code) != 0 {
		err = errors.New("read " + contract.EnvRank + " and " + contract.EnvWorldSize + ": want both, and a rank below the number of ranks")
	}
	return r, err
}

// statedRank is the rank in a start that no interposer watches. It is for the status alone, so a mistake in it is no error.
func statedRank() rank {
	index, err := strconv.ParseUint(os.Getenv(contract.EnvRank), 10, 32)
	count, errCount := strconv.ParseUint(os.Getenv(contract.EnvWorldSize), 10, 32)
	if err != nil || errCount != nil || index >= count {
		return rank{0, 1}
	}
	return rank{uint32(index), uint32(count)}
}

// several reports whether the engine has more than one worker. They need not be running (environment.alone).
func (r rank) several() bool { return r.count > 1 }

// file is this worker's own file if the others write theirs.
func (r rank) file(path string) string {
	if path == "" || !r.several() {
		return path
	}
	return path + "." + strconv.Itoa(int(r.index))
}

// factors are part of the identity: a rank's graphs are unusable for another rank, and in a group of another
// size.
func (r rank) factors() artifacts.Identity {
	if !r.several() {
		return nil
	}
	return artifacts.Identity{
		{Key: artifacts.KeyRankIndex, Value: strconv.Itoa(int(r.index))},
		{Key: artifacts.KeyRankCount, Value: strconv.Itoa(int(r.count))},
	}
}

// size is a variable's value for this rank: one number of bytes for all ranks, or one a rank.
func (r rank) size(variable string, sizes []uint64) (uint64, error) {
	if len(sizes) == 0 {
		return 0, nil
	}
	if len(sizes) != 1 && len(sizes) != int(r.count) {
		return 0, fmt.Errorf("read %s: %d sizes for %d ranks", variable, len(sizes), r.count)
	}
	return sizes[min(int(r.index), len(sizes)-1)], nil
}
