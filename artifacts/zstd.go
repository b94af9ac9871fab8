package artifacts

import (
	"sync"

	"github.com/klauspost/compress/zstd"
)

// One thread each: the output then depends on the input alone, and a restoring engine keeps its cores.
var (
	zstdEncoder = sync.OnceValues(func() (*zstd.Encoder, error) {
		return zstd.NewWriter(nil, zstd.WithEncoderConcurrency(1), zstd.WithEncoderLevel(zstd.SpeedBetterCompression),
			zstd.WithEncoderCRC(false)) // the section table has checksums
	})
	zstdDecoder = sync.OnceValues(func() (*zstd.Decoder, error) {
		return zstd.NewReader(nil, zstd.WithDecoderConcurrency(1), zstd.WithDecoderMaxMemory(maxCompressed),
			zstd.WithDecoderLowmem(true))
	})
)
