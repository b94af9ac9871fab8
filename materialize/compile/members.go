package compile

import "math/bits"

// members is a set of numbers below a limit, whose neighbours are found in a few steps however sparse it is. Each bit of a level
// says whether a word of the level below has any.
type members [][]uint64

func newMembers(limit int) members {
	var m members
	for n := limit + 1; ; {
		n = (n + 63) / 64
		m = append(m, make([]uint64, n))
		if n == 1 {
			return m
		}
	}
}

func (m members) remove(i int) {
	for _, level := range m {
		if level[i/64] &^= 1 << (i % 64); level[i/64] != 0 {
			return
		}
		i /= 64
	}
}

// before returns the greatest member below i, which is at most the limit, or -1.
func (m members) before(i int) int {
	for l, level := range m {
		word := i / 64
		if below := level[word] & (1<<(i%64) - 1); below != 0 {
			i = word*64 + bits.Len64(below) - 1
			for l--; l >= 0; l-- {
				i = i*64 + bits.Len64(m[l][i]) - 1
			}
			return i
		}
		i = word
	}
	return -1
}

// from returns the least member that is not below i, or -1.
func (m members) from(i int) int {
	for l, level := range m {
		word := i / 64
		if word >= len(level) {
			return -1
		}
		if above := level[word] >> (i % 64) << (i % 64); above != 0 {
			i = word*64 + bits.TrailingZeros64(above)
			for l--; l >= 0; l-- {
				i = i*64 + bits.TrailingZeros64(m[l][i])
			}
			return i
		}
		i = word + 1
	}
	return -1
}

func (m members) add(i int) {
	for _, level := range m {
		level[i/64] |= 1 << (i % 64)
		i /= 64
	}
}

func (m members) has(i int) bool { return m[0][i/64]>>(i%64)&1 != 0 }
