package owned

import (
	"crypto/sha256"
	"encoding/hex"
	"sync"

	"github.com/opblocks/opblocks/internal/compare"
)

// Fingerprint returns a short hash of differences. If there are none, it returns an empty string.
func Fingerprint(differences []compare.Difference) string {
	if len(differences) == 0 {
		return ""
	}
	var text []byte
	for _, d := range differences {
		for _, part := range [...]string{d.Path, d.Want, d.Have} {
			text = append(append(text, part...), 0)
		}
	}
	s := SumOf(text)
	return string(s[:12])
}

// Sum is the hash of what would be sent: the first half of a SHA-256, in hexadecimal.
type Sum [sha256.Size]byte

// SumOf returns the sum of an encoded object.
func SumOf(encoded []byte) (s Sum) {
	digest := sha256.Sum256(encoded)
	hex.Encode(s[:], digest[:len(s)/2])
	return s
}

// Buffers is a pool of buffers for encoded objects.
var Buffers = sync.Pool{New: func() any { return new(make([]byte, 0, 4096)) }}
