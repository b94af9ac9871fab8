package inspect

import "fmt"

// Bytes formats a size with a binary unit and at most four digits.
func Bytes(n uint64) string {
	if n < 1<<10 {
		return fmt.Sprintf("%d B", n)
	}
	value, unit := float64(n), 0
	for value >= 999.5 && unit < 5 {
		value /= 1024
		unit++
	}
	decimals := 2
	switch {
	case value >= 100:
		decimals = 0
	case value >= 10:
		decimals = 1
	}
	return fmt.Sprintf("%.*f %s", decimals, value, []string{"B", "KiB", "MiB", "GiB", "TiB", "PiB"}[unit])
}
