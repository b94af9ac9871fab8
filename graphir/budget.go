package graphir

import (
	"fmt"
	"slices"

	"google.golang.org/protobuf/encoding/protowire"
)

// maxEncoded bounds the bytes of both sections together.
const maxEncoded = 16 << 20

// The field numbers of Spec.blob_data and Spec.group_data.
const (
	blobDataField  = 3
	groupDataField = 4
)

// graphEntryBytes and bufferEntryBytes are the approximate memory of one entry of a table, by field number of the section. An
// encoded entry of two bytes can become a struct of hundreds.
var (
	graphEntryBytes = map[protowire.Number]int64{2: 16, 9: 400, 10: 400, 11: 200, 12: 250, 13: 300, 14: 400, 15: 150,
		16: 400, 17: 100, 21: 250}
	// graphTexts and bufferTexts are the fields that have the same size decoded and encoded. All others are packed numbers.
	graphTexts       = map[protowire.Number]bool{2: true, 3: true, 4: true, 5: true, 11: true, 14: true, 16: true, 26: true}
	bufferEntryBytes = map[protowire.Number]int64{1: 500, 2: 350, 20: 100}
	bufferTexts      = map[protowire.Number]bool{20: true}
)

// budget counts the memory that decoding would take.
type budget struct {
	left    int64
	encoded int
}

func newBudget() *budget { return &budget{left: maxDecoded} }

// scan counts the encoded tables before anything is allocated for them. It skips the bytes of the fields in free. It counts the
// bytes of the fields in texts once, and all others as packed numbers.
func (b *budget) scan(data []byte, entryBytes map[protowire.Number]int64, texts map[protowire.Number]bool, free ...protowire.Number) error {
	for len(data) > 0 {
		field, kind, n := protowire.ConsumeTag(data)
		if n < 0 {
			return protowire.ParseError(n)
		}
		size := protowire.ConsumeFieldValue(field, kind, data[n:])
		if size < 0 {
			return protowire.ParseError(size)
		}
		cost := entryBytes[field]
		switch {
		case slices.Contains(free, field):
		case texts[field]:
			b.encoded += n + size
			cost += int64(size)
		default:
			b.encoded += n + size
			cost += numbers(data[n : n+size])
		}
		data = data[n+size:]
		if err := b.take(cost); err != nil {
			return err
		}
	}
	if b.encoded > maxEncoded {
		return fmt.Errorf("%d bytes (at most %d)", b.encoded, maxEncoded)
	}
	return nil
}

// numbers returns the most memory for the packed numbers of a field: each ends with a byte below 0x80 and may become eight bytes.
func numbers(field []byte) int64 {
	n := int64(0)
	for _, b := range field {
		n += int64(b>>7 ^ 1)
	}
	return 8 * n
}

func (b *budget) take(n int64) error {
	if b.left -= n; b.left < 0 {
		return fmt.Errorf("more than %d bytes decoded", maxDecoded)
	}
	return nil
}
