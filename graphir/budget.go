package graphir

import (
	"fmt"

	"google.golang.org/protobuf/encoding/protowire"
)

// maxEncoded bounds the section without blob_data; numbers in columns grow up to eightfold when they are read.
const maxEncoded = 32 << 20

// blobDataField is the number of Spec.blob_data.
const blobDataField = 20

// entryBytes is about what one entry of a table costs in memory, by field number of Spec: an entry of two bytes can
// become a struct of hundreds.
var entryBytes = map[protowire.Number]int64{
	2: 16, 9: 400, 10: 400, 11: 200, 12: 250, 13: 300, 14: 1200, 15: 500, 16: 350, 17: 150, blobDataField: 24,
}

// budget counts the memory that decoding takes.
type budget struct{ left int64 }

// newBudget looks over the encoded tables before anything is allocated for them.
func newBudget(data []byte) (*budget, error) {
	b := &budget{left: MaxDecoded}
	encoded := 0
	for len(data) > 0 {
		field, kind, n := protowire.ConsumeTag(data)
		if n < 0 {
			return nil, protowire.ParseError(n)
		}
		size := protowire.ConsumeFieldValue(field, kind, data[n:])
		if size < 0 {
			return nil, protowire.ParseError(size)
		}
		data = data[n+size:]
		if field != blobDataField {
			encoded += n + size
		}
		if err := b.take(entryBytes[field]); err != nil {
			return nil, err
		}
	}
	if encoded > maxEncoded {
		return nil, fmt.Errorf("%d bytes (at most %d)", encoded, maxEncoded)
	}
	return b, nil
}

func (b *budget) take(n int64) error {
	if b.left -= n; b.left < 0 {
		return fmt.Errorf("it takes more than %d bytes decoded", MaxDecoded)
	}
	return nil
}
