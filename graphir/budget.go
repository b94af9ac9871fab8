package graphir

import (
	"fmt"

	"google.golang.org/protobuf/encoding/protowire"
)

// maxEncoded bounds both sections together; numbers in columns grow up to eightfold when they are read.
const maxEncoded = 32 << 20

// blobDataField is the number of Spec.blob_data.
const blobDataField = 3

// graphEntryBytes and bufferEntryBytes are about what one entry of a table costs in memory, by field number of the
// section: an entry of two bytes can become a struct of hundreds.
var (
	graphEntryBytes = map[protowire.Number]int64{2: 16, 9: 400, 10: 400, 11: 200, 12: 250, 13: 300, 14: 1200, 15: 150,
		16: 1200, 17: 100, 21: 250}
	bufferEntryBytes = map[protowire.Number]int64{1: 500, 2: 350}
)

// budget counts the memory that decoding takes.
type budget struct {
	left    int64
	encoded int
}

func newBudget() *budget { return &budget{left: MaxDecoded} }

// scan looks over the encoded tables before anything is allocated for them. The bytes of the field named free are not
// counted.
func (b *budget) scan(data []byte, entryBytes map[protowire.Number]int64, free protowire.Number) error {
	for len(data) > 0 {
		field, kind, n := protowire.ConsumeTag(data)
		if n < 0 {
			return protowire.ParseError(n)
		}
		size := protowire.ConsumeFieldValue(field, kind, data[n:])
		if size < 0 {
			return protowire.ParseError(size)
		}
		data = data[n+size:]
		if field != free {
			b.encoded += n + size
		}
		if err := b.take(entryBytes[field]); err != nil {
			return err
		}
	}
	if b.encoded > maxEncoded {
		return fmt.Errorf("%d bytes (at most %d)", b.encoded, maxEncoded)
	}
	return nil
}

func (b *budget) take(n int64) error {
	if b.left -= n; b.left < 0 {
		return fmt.Errorf("it takes more than %d bytes decoded", MaxDecoded)
	}
	return nil
}
